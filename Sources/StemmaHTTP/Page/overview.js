// What the node holds, and how it stands.
import { models } from "./api.js";
import { barTable, timeChart } from "./chart.js";
import { data, el, put, table } from "./dom.js";
import { ago, bytes, count, kinds, number, operations } from "./format.js";
import { lagText } from "./peers.js";
import { link, modelLink } from "./route.js";

const card = (title, ...content) => el("section.card", el("h2", title), content);
const wide = (title, ...content) => el("section.card.wide", el("h2", title), content);
const none = () => el("p.status", "None.");

const figure = ([label, value, href]) =>
  el("div", el("dt", label), el("dd", href ? el("a", { href }, value) : value));

const figures = (status) => el("dl.figures", [
  ["Events", number(status.events), "#/events"],
  ["Records", number(status.records), "#/records"],
  ["Partitions", number(status.partitions)],
  ["Open conflicts", number(status.conflicts), "#/conflicts"],
  ["Dangling references", number(status.danglingReferences), link("conflicts", { kind: "dangling" })],
  ["Log", `${bytes(status.logBytes)} in ${count(status.files, "file")}`, "#/files"],
  ["Tables", bytes(status.tableBytes)],
].map(figure));

const corruptionNode = ({ file, offset, what }) => el("li.bad", "Corrupt: ",
  el("a", { href: "#/files" }, data(file)), ` at byte ${number(offset)}: `, data(what));

const lossNode = ({ partition, origin, from, to }) => el("li.bad", "Lost: ",
  from === to ? `event ${from}` : `events ${from} to ${to}`, " of ", data(origin), " in ",
  el("a", { href: link("events", { partition }) }, data(partition)));

const differenceNode = ({ field, type, peer, peerType }) => el("li", "Schema differs: ", data(field), " is ",
  data(type ?? "absent"), " here and ", data(peerType ?? "absent"), " at ", data(peer));

const notices = (status) => {
  const rows = [
    ...status.corruption.map(corruptionNode),
    ...status.missing.map(lossNode),
    ...status.unrecognizedFiles.map((file) => el("li", "Unrecognized file: ", data(file))),
    ...status.schemaDifferences.map(differenceNode),
    ...status.notices.map((text) => el("li", data(text))),
  ];
  return rows.length > 0 && wide("Notices", el("ul.plain", rows));
};

const linked = (value, href) => (value === 0 ? "0" : el("a", { href }, number(value)));

const conflictCard = (counts) => {
  const rows = counts.filter((row) => kinds.some((kind) => row[kind] > 0)).map((row) => [
    el("a", { href: link("conflicts", { model: row.model }) }, data(row.model)),
    ...kinds.map((kind) => linked(row[kind], link("conflicts", { model: row.model, kind })))]);
  return card("Open conflicts", rows.length === 0 ? none()
    : table("Open conflicts", ["Model", ...kinds.map((kind) => `#${kind}`)], rows));
};

const exchangeNode = ({ problem, lastExchange }) => {
  if (problem) return el("span.bad", data(problem));
  return lastExchange ? ago(lastExchange.time) : "never";
};

const peerCard = (peers) => card("Peers", peers.length === 0 ? none()
  : table("Peers", ["Peer", "Lag", "Last exchange"], peers.map((peer) => [
    el("a", { href: "#/peers" }, data(peer.name)), lagText(peer), exchangeNode(peer)])));

const partitionTable = (rows) => barTable("Largest partitions", ["Partition", "#Events"],
  rows.map(({ partition, events }) => ({ size: events,
    cells: [el("a", { href: link("events", { partition }) }, data(partition)), number(events)] })));

const modelTable = (rows) => barTable("Models", ["Model", "#Events", ...operations.map((op) => `#${op}`)],
  rows.map((row) => ({ size: row.events, cells: [
    el("a", { href: modelLink(row.model) }, data(row.model)), number(row.events),
    ...operations.map((op) => linked(row[op], link("events", { model: row.model, op })))] })));

const reserved = (rows) => {
  const place = el("div");
  place.style.minHeight = `${(rows + 1) * 30}px`;
  return place;
};

const ifPermitted = (request) => request.catch((error) => {
  if (error.status === 403) return null;
  throw error;
});

export const open = async (page) => {
  const slow = page.get("/v1/activity");
  slow.catch(() => {});
  const [node, status, counts, schema] = await Promise.all([
    page.get("/v1/node"), ifPermitted(page.get("/v1/status")), page.get("/v1/conflicts/counts"), models(),
  ]);
  const chart = el("div.chartspace");
  const [byModel, partitions] = [reserved(schema.length), reserved(Math.min(20, status?.partitions ?? 20))];
  page.show(page.heading("Overview", el("p.dim", "Node ", data(node.name),
    status && [", scope ", data(status.scope.join(" "))])),
  status && [figures(status), notices(status)],
  el("div.cards", wide("Events over time", chart), conflictCard(counts), status && peerCard(status.peers),
    wide("Models", byModel), wide("Largest partitions", partitions)));
  page.ready({ node, status, counts });
  const activity = await slow;
  put(chart, timeChart(activity.days));
  put(byModel, modelTable(activity.models));
  put(partitions, partitionTable(activity.largestPartitions));
  page.ready({ node, status, counts, activity });
};
