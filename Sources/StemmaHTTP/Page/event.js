// Everything about one event.
import { data, el, facts, table } from "./dom.js";
import { opNode, recordAnchor, ruleText, timeNode, valueNode } from "./format.js";
import { eventLink, link } from "./route.js";

export const nameLink = (name, partition) => el("a", { href: eventLink(name, { partition }) }, data(name));

const names = (events, partition) => events?.length > 0
  && events.map((name, index) => [index > 0 && ", ", nameLink(name, partition)]);

export const changeTable = (changes) => {
  const rows = changes.map(({ field, from, to }) => ({
    props: { "data-field": field, "data-value": JSON.stringify(to) },
    cells: [data(field), valueNode(from, "from"), valueNode(to)],
  }));
  return table("Changes", ["Field", "Old", "New"], rows, { class: "changes" });
};

const outcomeText = ({ field, state, by, rule, against }, partition) => {
  const other = by ? nameLink(by, partition) : "another write";
  const why = [rule && ` (${ruleText(rule)})`,
    against?.length > 0 && [", against ", names(against, partition)]];
  return el("li", data(field ?? "existence", "fieldname"), " ", {
    shown: ["is shown", why],
    outdone: ["is not shown: ", other, " goes before it", why],
    superseded: ["was replaced by ", other, ", which had seen it"],
  }[state] ?? state);
};

const durabilityText = ({ isEverywhere, peers, unknown, acknowledgedBy }) => {
  const rows = [
    ...peers.map(({ name, hasEvent }) => [data(name), hasEvent ? " has it" : " does not have it"]),
    ...unknown.map((name) => [data(name), " is unknown: no successful exchange"]),
    ...acknowledgedBy.map((name) => ["acknowledged by ", data(name)]),
  ];
  return [isEverywhere ? "On every peer that holds the partition." : "Not known to be on every peer.",
    rows.length > 0 && el("ul.plain", rows.map((row) => el("li", row)))];
};

const section = (title, ...content) => el("section", el("h3", title), content);

const overview = (event) => facts([
  ["Record", recordAnchor(event)],
  ["Time", timeNode(event.time)],
  ["Author", event.author && data(event.author)],
  ["Message", event.message && data(event.message, "text")],
  ["Commit", el("a", { href: link("events", { commit: event.commit }) }, data(event.commit))],
  ["Partition", el("a", { href: link("events", { partition: event.partition }) }, data(event.partition))],
  ["Version", String(event.version)],
  ["Origin", data(event.origin)],
  ["Relationship", event.relationship && data(event.relationship)],
  ["Cause", event.cause && nameLink(event.cause.event, event.cause.partition)],
  ["Parents", names(event.parents, event.partition)],
  ["Concurrent", names(event.concurrent, event.partition)],
  ["Source", event.source && data(event.source)],
  ["Digest", data(event.digest)],
]);

// Without changes, such as for want of older events, the written values are known still.
const changesOf = ({ changes, fields }) =>
  changes ?? Object.entries(fields).map(([field, to]) => ({ field, to }));

const outcomeList = ({ outcomes, partition }) =>
  el("ul.plain", outcomes.map((outcome) => outcomeText(outcome, partition)));

const content = (event) => [
  overview(event),
  section("Changes", changeTable(changesOf(event))),
  event.outcomes && section("What became of it", outcomeList(event)),
  section("Durability", durabilityText(event.durability)),
];

export const loadEvent = async (page, panel, name, partition) => {
  try {
    const event = await page.get(`/v1/events/${encodeURIComponent(name)}`, { partition });
    panel.show([el("span.position", `@${event.position}`), " ", opNode(event), " ",
      data(event.event)], content(event));
    page.ready(event);
  } catch (error) {
    if (error.name === "AbortError") return;
    panel.show(data(name), el("p.bad", { role: "alert" }, error.message));
    page.ready(null);
  }
};
