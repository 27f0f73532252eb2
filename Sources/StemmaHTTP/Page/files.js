// The files of the log, and the parts of one.
import { get } from "./api.js";
import { button, data, el, facts, scroller, svg } from "./dom.js";
import { bytes, number, time } from "./format.js";
import { longTable } from "./list.js";
import { go } from "./route.js";

const pair = (values, f = String) => (values ? `${f(values[0])} – ${f(values[1])}` : "–");
const ratio = ({ rawBytes, storedBytes }) => (storedBytes > 0 ? (rawBytes / storedBytes).toFixed(2) : "–");

const sizeBar = (size, top) => svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
  svg("rect", { x: 0, y: 0, width: Math.max(0.6, (size / Math.max(top, 1)) * 100), height: 10 }));

const plain = (label, text, className) => ({ label, text, class: className, cell: text });

const columnsOf = (files) => {
  const top = Math.max(...files.map(({ storedBytes }) => storedBytes), 1);
  const state = (file) => file.corruption ?? "sound";
  return [
    { label: "File", isHead: true, class: "mono", text: ({ file }) => file,
      cell: ({ number: name, file }) => el("a", { href: `#/files/${name}` }, data(file)) },
    plain("Kind", ({ kind }) => kind),
    plain("Positions", ({ positions }) => pair(positions), "number"),
    plain("Times", ({ times }) => pair(times, time)),
    plain("Events", ({ events }) => number(events), "number"),
    plain("Raw", ({ rawBytes }) => bytes(rawBytes), "number"),
    plain("Stored", ({ storedBytes }) => bytes(storedBytes), "number"),
    { label: "Share", text: () => "", most: 12, cell: ({ storedBytes }) => sizeBar(storedBytes, top) },
    plain("Ratio", ratio, "number"),
    plain("Partitions", ({ partitions }) => number(partitions), "number"),
    plain("Blocks", ({ blocks }) => number(blocks), "number"),
    { label: "State", text: state, cell: (file) => (file.corruption ? el("span", { class: "bad" }, "corrupt: ", data(file.corruption)) : "sound") },
  ];
};

const isCorrupt = (part) => part.corruption.length > 0;
const partName = (part) => (part.number === undefined ? part.part : `${part.part} ${part.number}`);
const partTitle = (part) => `${partName(part)}: ${bytes(part.bytes)} at ${number(part.offset)}${isCorrupt(part) ? ", corrupt" : ""}`;

/** The parts in order, as wide as they have bytes; tiny ones stay visible. */
const strip = (file) => {
  const total = Math.max(1, file.parts.reduce((sum, part) => sum + part.bytes, 0));
  let x = 0;
  const rects = file.parts.map((part, index) => {
    const width = (part.bytes / total) * 1000;
    const rect = svg("rect", { x, y: 0, width: Math.max(0.8, width - 0.6), height: 40,
      class: isCorrupt(part) ? "part corrupt" : `part ${part.part} ${index % 2 ? "odd" : ""}` }, svg("title", {}, partTitle(part)));
    x += width;
    return rect;
  });
  const corrupt = file.parts.filter(isCorrupt).length;
  return svg("svg", { class: "strip", viewBox: "0 0 1000 40", preserveAspectRatio: "none", role: "img",
    "aria-label": `${number(file.parts.length)} parts, ${bytes(file.bytes)}${corrupt > 0 ? `, ${number(corrupt)} corrupt` : ", none corrupt"}` }, rects);
};

const factText = (part) => Object.entries(part.facts).map(([name, value]) => `${name} ${value}`).join(", ");
const flawText = (part) => part.corruption.map(({ offset, what }) => `at ${number(offset)}: ${what}`).join("; ");

const partColumns = [
  { label: "Part", isHead: true, text: partName, cell: partName },
  plain("Offset", (part) => number(part.offset), "number"),
  plain("Bytes", (part) => number(part.bytes), "number"),
  plain("Keys", (part) => (part.keys === undefined ? "" : number(part.keys)), "number"),
  plain("Checked", (part) => (part.checked === undefined ? "" : part.checked ? "yes" : "no")),
  { label: "Facts", most: 70, class: "mono", text: factText, cell: (part) => data(factText(part)) },
  { label: "Corruption", most: 60, text: flawText, cell: (part) => el("span", { class: "bad" }, data(flawText(part))) },
];

const openFile = async (page, name) => {
  const file = await get(`/v1/files/${encodeURIComponent(name)}`, {}, { signal: page.signal });
  const back = () => go("#/files");
  const table = longTable({ label: "Parts", columns: partColumns, identity: (part) => partName(part),
    rowProps: (part) => ({ class: isCorrupt(part) ? "corrupt" : undefined }), empty: "No parts." });
  page.show(page.heading(`File ${name}`, button("All files", back)),
    file.corrupt && el("p", { class: "problem bad", role: "alert" }, "This file is corrupt."),
    facts([["File", data(file.file)], ["Format", file.format], ["Bytes", number(file.bytes)], ["Parts", number(file.parts.length)]]),
    strip(file), table.element);
  table.fill(file.parts);
  page.list = table;
  page.back = back;
  page.onClose = () => table.close();
  page.ready(file);
};

export const open = async (page, route) => {
  if (route.parts[0]) return openFile(page, decodeURIComponent(route.parts[0]));
  const files = await get("/v1/files", {}, { signal: page.signal });
  const corrupt = files.filter(({ corruption }) => corruption !== null).length;
  const table = longTable({ label: "Files", columns: columnsOf(files), identity: ({ number: name }) => name,
    rowProps: ({ corruption }) => ({ class: corruption === null ? undefined : "corrupt" }), empty: "No files." });
  page.show(page.heading("Files", corrupt > 0 && el("p", { class: "bad" }, `${number(corrupt)} corrupt`)), table.element);
  table.fill(files);
  page.list = table;
  page.onClose = () => table.close();
  page.ready(files);
};
