// What the node holds, and how it stands.
import { get, models } from "./api.js";
import { barTable, timeChart } from "./chart.js";
import { data, el, scroller } from "./dom.js";
import { ago, bytes, count, number } from "./format.js";
import { link, modelLink } from "./route.js";

const operations = ["create", "update", "delete", "link", "unlink", "resolve"];
const kinds = ["value", "delete", "cardinality", "dangling"];

const card = (title, className, ...content) => el("section", { class: `card ${className}` }, el("h2", {}, title), content);

const figure = (label, value, href) => el("div", {}, el("dt", {}, label),
  el("dd", {}, href ? el("a", { href }, value) : value));

const figures = (status) => el("dl", { class: "figures" },
  figure("Events", number(status.events), "#/events"),
  figure("Records", number(status.records), "#/records"),
  figure("Partitions", number(status.partitions)),
  figure("Open conflicts", number(status.conflicts), "#/conflicts"),
  figure("Dangling references", number(status.danglingReferences), link("conflicts", { kind: "dangling" })),
  figure("Log", `${bytes(status.logBytes)} in ${count(status.files, "file")}`, "#/files"),
  figure("Tables", bytes(status.tableBytes)));

const trouble = (status) => [
  ...status.corruption.map((flaw) => ["bad", ["Corrupt: ", data(flaw.file), ` at ${number(flaw.offset)}: `, data(flaw.what)]]),
  ...status.missing.map((loss) => ["bad", ["Lost: events ", `${loss.from} to ${loss.to} of `, data(loss.origin), " in ",
    data(loss.partition)]]),
  ...status.unrecognizedFiles.map((file) => ["", ["Unrecognized file: ", data(file)]]),
  ...status.schemaDifferences.map((one) => ["", ["Schema: ", data(one.field), " is ", data(one.type), " here and ",
    data(one.peerType), " at ", data(one.peer)]]),
  ...status.notices.map((notice) => ["", [data(notice)]]),
];

const notices = (status) => {
  const rows = trouble(status);
  if (rows.length === 0 && status.isSound) return null;
  return card("Notices", "wide", el("ul", { class: "plain" },
    !status.isSound && el("li", { class: "bad" }, "This node is not sound; `stemma verify` says more."),
    rows.map(([className, content]) => el("li", { class: className }, content))));
};

const conflictCard = (counts) => {
  const rows = counts.filter((row) => kinds.some((kind) => row[kind] > 0));
  const cell = (row, kind) => el("td", { class: "number" }, row[kind] === 0 ? "0"
    : el("a", { href: link("conflicts", { model: row.model, kind }) }, number(row[kind])));
  return card("Open conflicts", "", rows.length === 0 ? el("p", { class: "liststatus" }, "None.")
    : scroller("Open conflicts", el("table", {},
      el("thead", {}, el("tr", {}, ["Model", ...kinds].map((kind, index) =>
        el("th", { scope: "col", class: index > 0 ? "number" : undefined }, kind)))),
      el("tbody", {}, rows.map((row) => el("tr", {},
        el("th", { scope: "row" }, el("a", { href: link("conflicts", { model: row.model }) }, data(row.model))),
        kinds.map((kind) => cell(row, kind))))))));
};

const lag = (peer) => (peer.behind === null ? "unknown" : peer.behind + peer.ahead === 0 ? "equal"
  : `${number(peer.behind)} behind, ${number(peer.ahead)} ahead`);

const peerCard = (peers) => card("Peers", "", peers.length === 0 ? el("p", { class: "liststatus" }, "None.")
  : scroller("Peers", el("table", {},
    el("thead", {}, el("tr", {}, ["Peer", "Lag", "Last exchange"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, peers.map((peer) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: "#/peers" }, data(peer.name))), el("td", {}, lag(peer)),
      el("td", {}, peer.problem ? el("span", { class: "bad" }, data(peer.problem))
        : peer.lastExchange ? ago(peer.lastExchange.time) : "never")))))));

const partitionTable = (rows) => barTable("Largest partitions",
  rows.map(({ partition, events }) => ({
    name: partition, value: events, cells: [number(events)], href: link("events", { partition }),
  })), ["Partition", "Events"]);

const modelTable = (rows) => barTable("Models", rows.map((row) => ({
  name: row.model, value: row.events, href: modelLink(row.model),
  cells: [number(row.events), ...operations.map((op) => (row[op] === 0 ? "0"
    : el("a", { href: link("events", { model: row.model, op }) }, number(row[op]))))],
})), ["Model", "Events", ...operations]);

/** The space that a table will take, so that nothing moves when it comes. */
const reserve = (element, rows) => { element.style.minHeight = `${(rows + 1) * 30}px`; };

const content = (page, node, status, counts, schema) => {
  const chart = el("div", { class: "chartspace", "aria-busy": "true" });
  const partitions = scroller("Largest partitions, scrollable");
  const byModel = scroller("Models, scrollable");
  reserve(partitions, Math.min(20, status?.partitions ?? 20));
  reserve(byModel, schema.length);
  page.show(page.heading("Overview", el("p", { class: "lead" }, "Node ", data(node.name),
    status && [", scope ", data(status.scope.join(" "))])),
  el("div", { class: "page" }, status && figures(status), status && notices(status),
    el("div", { class: "cards" },
      card("Events over time", "wide", chart), conflictCard(counts), status && peerCard(status.peers),
      card("Models", "wide", byModel), card("Largest partitions", "wide", partitions))));
  return (activity) => {
    chart.replaceChildren(timeChart(activity.days));
    chart.removeAttribute("aria-busy");
    partitions.replaceChildren(partitionTable(activity.largestPartitions));
    byModel.replaceChildren(modelTable(activity.models));
  };
};

const ifPermitted = (request) => request.catch((error) => {
  if (error.status === 403) return null;
  throw error;
});

export const open = async (page) => {
  const options = { signal: page.signal };
  const activity = get("/v1/activity", {}, options);
  activity.catch(() => {});
  const [node, status, counts, schema] = await Promise.all([
    get("/v1/node", {}, options), ifPermitted(get("/v1/status", {}, options)),
    get("/v1/conflicts/counts", {}, options), models(),
  ]);
  const fill = content(page, node, status, counts, schema);
  page.ready({ node, status, counts });
  const result = await activity;
  fill(result);
  page.ready({ node, status, counts, activity: result });
};
