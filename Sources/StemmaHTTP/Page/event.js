// Everything about one event.
import { get } from "./api.js";
import { button, data, el, facts, scroller } from "./dom.js";
import { keyForm, recordNode, ruleText, timeNode, valueNode } from "./format.js";
import { eventLink, link, recordLink } from "./route.js";

/** An event by its name, which counts within the partition. */
export const nameLink = (name, partition) => el("a", { href: eventLink(name, { partition }) }, data(name));

const listOf = (nodes) => nodes.flatMap((node, index) => (index === 0 ? [node] : [", ", node]));
const names = (events, partition) => (events?.length > 0 ? listOf(events.map((name) => nameLink(name, partition))) : null);

const recordHead = (event) => {
  const form = keyForm(event.key);
  const name = recordNode(event.model, event.key);
  return form === null ? name : el("a", { href: recordLink(event.model, form) }, name);
};

/** Changes as a table: field, old, new. */
export const changeTable = (changes) => scroller("Changes", el("table", { class: "changes" },
  el("thead", {}, el("tr", {}, ["Field", "Old", "New"].map((name) => el("th", { scope: "col" }, name)))),
  el("tbody", {}, changes.map(({ field, from, to }) => el("tr", { "data-field": field, "data-value": JSON.stringify(to) },
    el("th", { scope: "row" }, data(field)),
    el("td", {}, valueNode(from, "from")), el("td", {}, valueNode(to, "to")))))));

const written = (event) => el("dl", { class: "facts" }, Object.entries(event.fields).map(([name, value]) =>
  el("div", { "data-field": name, "data-value": JSON.stringify(value) }, el("dt", {}, data(name)), el("dd", {}, valueNode(value)))));

const outcomeText = (outcome, partition) => {
  const by = outcome.by ? nameLink(outcome.by, partition) : "another write";
  const against = outcome.against?.length > 0 ? [", against ", names(outcome.against, partition)] : null;
  const rule = outcome.rule ? ` (${ruleText(outcome.rule)})` : "";
  return {
    shown: ["is shown", against, rule],
    outdone: ["is not shown: ", by, " goes before it", rule, against],
    superseded: ["was replaced by ", by, ", which had seen it"],
  }[outcome.state] ?? [outcome.state];
};

const outcomes = (event) => el("ul", { class: "plain" }, event.outcomes.map((outcome) =>
  el("li", {}, outcome.field === null ? "existence" : data(outcome.field, "fieldname"), " ",
    outcomeText(outcome, event.partition))));

const durabilityText = ({ isEverywhere, peers, unknown, acknowledgedBy }) => {
  const rows = [
    ...peers.map(({ name, hasEvent }) => [data(name), hasEvent ? " has it" : " does not have it"]),
    ...unknown.map((name) => [data(name), " is unknown: no successful exchange"]),
    ...acknowledgedBy.map((name) => ["acknowledged by ", data(name)]),
  ];
  return [isEverywhere ? "On every peer that holds the partition." : "Not known to be on every peer.",
    rows.length > 0 && el("ul", { class: "plain" }, rows.map((row) => el("li", {}, row)))];
};

const section = (title, ...content) => el("section", {}, el("h3", {}, title), content);

const overview = (event) => facts([
  ["Record", recordHead(event)],
  ["Time", timeNode(event.time)],
  ["Author", event.author && data(event.author)],
  ["Message", event.message && data(event.message, "text")],
  ["Commit", el("a", { href: link("events", { commit: event.commit }) }, data(event.commit))],
  ["Partition", el("a", { href: link("events", { partition: event.partition }) }, data(event.partition))],
  ["Version", String(event.version)],
  ["Origin", data(event.origin)],
  ["Sequence", String(event.sequence)],
  ["Relationship", event.relationship && data(event.relationship)],
  ["Cause", event.cause && nameLink(event.cause.event, event.cause.partition)],
  ["Parents", names(event.parents, event.partition)],
  ["Concurrent", names(event.concurrent, event.partition)],
  ["Source", event.source && data(event.source)],
  ["Digest", data(event.digest)],
]);

const content = (event, close) => [
  el("header", { class: "panelhead" },
    el("h2", { tabindex: "-1" }, el("span", { class: "position" }, `@${event.position}`), " ",
      el("span", { class: `op ${event.op}` }, event.op), " ", data(event.event)),
    button("Close", close, { class: "quiet", title: "Close (Esc)" })),
  overview(event),
  section(event.changes ? "Changes" : "Fields", event.changes?.length > 0 ? changeTable(event.changes) : written(event)),
  event.outcomes?.length > 0 && section("What became of it", outcomes(event)),
  section("Durability", durabilityText(event.durability)),
];

/** Loads an event into the panel. The old content stays until the new one is there, so that nothing flickers. */
export const showEvent = async (page, aside, name, partition, close) => {
  try {
    const event = await get(`/v1/events/${encodeURIComponent(name)}`, { partition }, { signal: page.signal });
    aside.replaceChildren(...content(event, close).filter(Boolean));
    aside.dataset.event = `@${event.position}`;
    page.ready(event);
  } catch (error) {
    if (error.name === "AbortError") return;
    aside.replaceChildren(el("header", { class: "panelhead" }, el("h2", {}, data(name)), button("Close", close)),
      el("p", { class: "bad", role: "alert" }, error.message));
    page.ready(null);
  }
};
