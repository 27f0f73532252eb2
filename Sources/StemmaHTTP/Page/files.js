// The files of the log, and the parts of one.
import { sizeBar } from "./chart.js";
import { button, data, el, facts, svg } from "./dom.js";
import { bytes, count, number, time } from "./format.js";
import { longTable } from "./list.js";
import { go } from "./route.js";

const mostFlaws = 20;

const range = (values, f = String) => (values ? values.map(f).join(" – ") : "–");

/** A column as longTable has it; "#" before its label marks numbers. */
const column = (label, text, more) => ({
  label: label.replace("#", ""), text, cell: (item) => data(text(item)),
  class: label.startsWith("#") && "number", ...more,
});

const fileLink = ({ file, number: n }) => el("a", { href: `#/files/${n}` }, data(file));

const ratioText = ({ rawBytes, storedBytes }) =>
  (storedBytes > 0 ? (rawBytes / storedBytes).toFixed(2) : "–");

const columnsOf = (files) => {
  const largest = Math.max(...files.map(({ storedBytes }) => storedBytes));
  return [
    column("File", ({ file }) => file, { cell: fileLink }),
    column("Kind", ({ kind }) => kind),
    column("State", ({ corruption }) => (corruption === null ? "sound" : "corrupt"), { most: 10 }),
    column("#Positions", ({ positions }) => range(positions)),
    column("Times", ({ times }) => range(times, time), { most: 46 }),
    column("#Events", ({ events }) => number(events)),
    column("#Raw", ({ rawBytes }) => bytes(rawBytes)),
    column("#Stored", ({ storedBytes }) => bytes(storedBytes)),
    column("Share", () => "", { most: 12, cell: ({ storedBytes }) => sizeBar(storedBytes, largest) }),
    column("#Ratio", ratioText),
    column("#Partitions", ({ partitions }) => number(partitions)),
    column("#Blocks", ({ blocks }) => number(blocks)),
  ];
};

const isCorrupt = ({ corruption }) => corruption.length > 0;
const nameOf = ({ part, number: n }) => (n === undefined ? part : `${part} ${n}`);
const flawText = ({ corruption }) =>
  corruption.map(({ offset, what }) => `at byte ${number(offset)}: ${what}`).join("; ");

const factText = ({ facts: known }) => Object.entries(known).map((pair) => pair.join(" ")).join(", ");

const partNode = (part, index, x, scale) => {
  const title = `${nameOf(part)}: ${bytes(part.bytes)} at ${number(part.offset)} ${flawText(part)}`;
  const width = Math.max(0.8, part.bytes * scale - 0.6);
  const className = isCorrupt(part) ? "corrupt" : index % 2 > 0 && "odd";
  return svg("rect.part", { class: className, x, y: 0, width, height: 40 }, svg("title", title));
};

/** The parts of a file beside each other, as wide as their shares of its bytes. */
const strip = ({ parts, bytes: size }) => {
  const scale = 1000 / Math.max(1, parts.reduce((sum, part) => sum + part.bytes, 0));
  let x = 0;
  const rects = parts.map((part, index) => {
    const rect = partNode(part, index, x, scale);
    x += part.bytes * scale;
    return rect;
  });
  const corrupt = parts.filter(isCorrupt).length;
  return svg("svg.strip", {
    viewBox: "0 0 1000 40", preserveAspectRatio: "none", role: "img",
    "aria-label": `${number(parts.length)} parts, ${bytes(size)}, ${number(corrupt)} corrupt`,
  }, rects);
};

const partColumns = [
  column("Part", nameOf),
  column("#Offset", ({ offset }) => number(offset)),
  column("#Bytes", (part) => number(part.bytes)),
  column("#Keys", ({ keys }) => (keys === undefined ? "" : number(keys))),
  column("Checked", ({ checked }) => ({ true: "yes", false: "no" })[checked] ?? ""),
  column("State", (part) => (isCorrupt(part) ? "corrupt" : ""), { most: 10 }),
  column("Facts", factText, { most: 70 }),
];

/** What is corrupt, by name; the names lead there. */
const flaws = (title, rows) => rows.length > 0 && el("div.problem", { role: "alert" },
  el("p", el("strong.bad", title)),
  el("ul.plain", rows.slice(0, mostFlaws).map(([name, text]) => el("li", name, ": ", data(text)))),
  rows.length > mostFlaws && el("p", `${number(rows.length - mostFlaws)} more.`));

const openFile = async (page, name) => {
  const file = await page.get(`/v1/files/${encodeURIComponent(name)}`);
  const table = longTable({ page, label: "Parts", columns: partColumns, identity: nameOf,
    rowClass: (part) => isCorrupt(part) && "corrupt" });
  const corruptParts = file.parts.map((part, index) => [part, index]).filter(([part]) => isCorrupt(part));
  page.show(page.heading(`File ${name}`, el("div.buttons", el("a.button", { href: "#/files" }, "All files"))),
    flaws("This file is corrupt", corruptParts.map(([part, index]) =>
      [button(nameOf(part), () => table.activate(index), { class: "inline" }), flawText(part)])),
    file.corrupt && corruptParts.length === 0
      && el("p.problem.bad", { role: "alert" }, "This file is corrupt."),
    facts([["File", data(file.file)], ["Format", file.format], ["Bytes", number(file.bytes)]]),
    strip(file), table.element);
  table.fill(file.parts);
  page.back = () => go("#/files");
  page.ready(file);
};

export const open = async (page, route) => {
  if (route.name) return openFile(page, route.name);
  const files = await page.get("/v1/files");
  const corrupt = files.filter(({ corruption }) => corruption !== null);
  const table = longTable({ page, label: "Files", columns: columnsOf(files), identity: (file) => file.number,
    rowClass: ({ corruption }) => corruption !== null && "corrupt" });
  page.show(page.heading("Files"), flaws(`${count(corrupt.length, "file")} corrupt`,
    corrupt.map((file) => [fileLink(file), file.corruption])), table.element);
  table.fill(files);
  return page.ready(files);
};
