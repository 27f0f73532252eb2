// One record: its fields, its history with branches, and what it was at each step.
import { get, modelPath, read } from "./api.js";
import { button, data, el, scroller } from "./dom.js";
import { editRecord } from "./edit.js";
import { changeNode, count, isSame, keyOf, keyText, recordNode, timestampTime, valueNode } from "./format.js";
import { graphCell, graphWidth, lanesOf } from "./graph.js";
import { listItem, longList } from "./list.js";
import { conflictLink, eventLink, link, recordLink, settle } from "./route.js";
import { timeline } from "./timeline.js";

const rowHeight = 46;

const orMissing = (request, missing = null) => request.catch((error) => {
  if (error.status === 404) return missing;
  throw error;
});

/** Reads a record as of a moment, each moment once. */
const reader = (page, path) => {
  const known = new Map();
  return (asOf) => {
    if (!known.has(asOf)) {
      const row = orMissing(get(path, { asOf }, { signal: page.signal }));
      row.catch(() => known.delete(asOf));
      known.set(asOf, row);
    }
    return known.get(asOf);
  };
};

const attribution = (decision, partition) => {
  if (!decision) return [el("td"), el("td"), el("td"), el("td")];
  const [winner] = decision.candidates;
  if (!winner) return [el("td", { colspan: "4", class: "dim" }, "nobody has written it")];
  const siblings = decision.candidates.length - 1;
  return [
    el("td", { class: "number" }, String(winner.version)),
    el("td", { title: timestampTime(winner.timestamp) }, winner.author ? data(winner.author) : ""),
    el("td", {}, el("a", { href: eventLink(winner.event, { partition }) }, data(winner.event))),
    el("td", {}, siblings > 0 && el("span", { class: decision.conflict ? "mark" : "" },
      decision.conflict ? `conflict, ${count(siblings, "sibling")}` : count(siblings, "sibling"))),
  ];
};

/** Fields with values; of the present record also who wrote them, of a past one what the step changed. */
const fieldTable = (record, before, decisions, partition) => {
  const names = Object.keys(record.fields);
  const heads = ["Field", "Value", ...(decisions ? ["Version", "Author", "Event", "Siblings"] : ["Changed at this step"])];
  const row = (name) => {
    const [value, old] = [record.fields[name], before?.fields[name] ?? null];
    const isChanged = before !== undefined && !isSame(value, old);
    return el("tr", { "data-field": name, "data-value": JSON.stringify(value), class: isChanged ? "changed" : undefined },
      el("th", { scope: "row" }, data(name)), el("td", {}, valueNode(value, "full")),
      decisions ? attribution(decisions.find((decision) => decision.field === name), partition)
        : el("td", {}, isChanged && changeNode(old, value)));
  };
  return scroller("Fields", el("table", { class: "fields" },
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, names.map(row))));
};

const historyRow = (state, event, index) => {
  const isSelected = state.steps.length - state.step === index;
  const fields = event.changes?.map(({ field }) => field) ?? Object.keys(event.fields);
  const href = recordLink(state.model.name, state.form, { at: `@${event.position}` });
  return el("div", listItem(index, state.history.length, `@${event.position}`, { class: "step" }),
    graphCell(state.lanes, index, state.graphWidth, rowHeight),
    el("a", { class: "row two", href, "aria-current": isSelected ? "step" : undefined },
      el("span", {}, el("span", { class: "position" }, `@${event.position}`), " ", el("span", { class: `op ${event.op}` }, event.op),
        " ", event.author && [data(event.author), el("span", { class: "dim" }, " at ")], data(event.event)),
      el("span", { class: "dim short" }, event.time.slice(0, 19).replace("T", " "), "  ", data(fields.join(", ")))),
    el("a", { class: "quiet", href: eventLink(`@${event.position}`), "aria-label": `Event @${event.position}` }, "event"));
};

const whySection = (why) => {
  const decisions = [...why.fields, ...why.conflicts].filter(({ words }) => words?.length > 0);
  return el("details", { class: "card why", open: why.fields.some(({ conflict }) => conflict) },
    el("summary", {}, el("h2", {}, "Why it is shown so")),
    decisions.map((decision) => el("section", {}, el("h3", {}, decision.field === null ? "existence" : data(decision.field)),
      decision.words.map((sentence) => el("p", {}, data(sentence, "text"))))));
};

const load = async (page, route, schema) => {
  const model = schema.find(({ name }) => name === decodeURIComponent(route.parts[0]));
  if (!model) throw new Error("There is no such model.");
  const form = route.parts[1];
  const options = { signal: page.signal };
  const [present, history, why] = await Promise.all([
    orMissing(read(modelPath("records", model.name, form), {}, options), { data: null, etag: null }),
    orMissing(get(modelPath("history", model.name, form), {}, options), []),
    orMissing(get(modelPath("why", model.name, form), {}, options), { fields: [], conflicts: [] }),
  ]);
  if (!present.data && history.length === 0) throw new Error("There is no such record, and there never was.");
  const lanes = lanesOf(history);
  return { model, form, present: present.data, etag: present.etag, history, why, lanes, steps: history.toReversed(),
    graphWidth: graphWidth(lanes), step: history.length, recordAt: reader(page, modelPath("records", model.name, form)) };
};

const partitionOf = (state) => state.history[0]?.partition;

/** The record at a step, and the one before it; step 0 is before the first event. */
const atStep = async (state, step) => {
  const isPresent = step === state.steps.length;
  const before = (at) => (at <= 0 ? null : state.recordAt(`@${state.steps[at - 1].position}`));
  const [record, old] = await Promise.all([isPresent ? state.present : before(step), step === 0 ? null : before(step - 1)]);
  return { record, old, isPresent };
};

const missingText = (state, step) => {
  const deletedBefore = state.steps.slice(0, step).some(({ op }) => op === "delete");
  return deletedBefore ? "It did not exist: it had been deleted." : "It did not exist yet.";
};

const body = (state, { record, old, isPresent }, missing) => {
  if (!record) return el("p", { class: "missing" }, missing);
  return fieldTable(record, isPresent ? undefined : old, isPresent ? state.why.fields : null, partitionOf(state));
};

const title = (state) => `${state.model.name} ${keyText(state.present?.key ?? state.history[0]?.key ?? keyOf(state.form))}`;

const actions = (page, state, edit) => {
  const isOpen = state.present?.conflicts?.length > 0 || state.why.conflicts.length > 0;
  const record = state.form.split("&").map(decodeURIComponent).join("&");
  return el("div", { class: "buttons" },
    isOpen && el("a", { class: "button primary", href: conflictLink(state.model.name, state.form) }, "Merge"),
    el("a", { class: "button", title: record, href: link("events", { model: state.model.name, key: state.form }) }, "Events"),
    state.present && button("Edit", edit, { title: "Edit (e)" }));
};

export const open = async (page, route, schema) => {
  const state = await load(page, route, schema);
  const place = el("div", { class: "fieldplace" });
  const list = longList({ label: "History", make: (event, index) => historyRow(state, event, index), empty: "No events." });
  let turn = 0;

  const shown = (record) => page.ready({ record, history: state.history, why: state.why });
  const showStep = async (step) => {
    const mine = ++turn;
    state.step = Math.max(0, Math.min(step, state.steps.length));
    slider.show(state.step);
    list.redraw();
    const found = await atStep(state, state.step);
    if (mine !== turn) return;
    place.replaceChildren(body(state, found, missingText(state, state.step)));
    shown(found.record);
  };
  const showAsOf = async (asOf) => {
    const mine = ++turn;
    const record = await state.recordAt(asOf);
    if (mine !== turn) return;
    slider.say(["As of ", data(asOf)]);
    place.replaceChildren(body(state, { record, old: record, isPresent: false }, "It did not exist then."));
    shown(record);
  };
  const fromRoute = ({ query }) => {
    if (query.get("asOf")) return showAsOf(query.get("asOf"));
    const index = state.steps.findIndex(({ position }) => `@${position}` === query.get("at"));
    return showStep(query.get("at") === "none" ? 0 : index < 0 ? state.steps.length : index + 1);
  };
  const addressOf = (step) => recordLink(state.model.name, state.form, {
    at: step === 0 ? "none" : step === state.steps.length ? null : `@${state.steps[step - 1].position}` });
  const toStep = (step) => {
    const to = Math.max(0, Math.min(step, state.steps.length));
    settle(addressOf(to));
    showStep(to).catch(page.fail);
  };
  const slider = timeline(state.steps, route.query.get("asOf"), toStep, (asOf) => {
    location.hash = recordLink(state.model.name, state.form, { asOf });
  });
  const edit = () => editRecord(state, () => page.reload());

  page.show(page.heading(title(state), actions(page, state, edit)), el("div", { class: "record" },
    el("section", { class: "card", "aria-label": "Fields" },
      el("p", { class: "recordline" }, recordNode(state.model.name, state.present?.key ?? keyOf(state.form))),
      slider.element, place, whySection(state.why)),
    el("section", { class: "card historycard" }, el("h2", {}, `History, ${count(state.history.length, "event")}`), list.element)));
  list.set(state.history);
  page.list = list;
  page.onClose = () => list.close();
  page.back = () => { location.hash = link(`records/${route.parts[0]}`); };
  page.keys = { ArrowLeft: () => toStep(state.step - 1), ArrowRight: () => toStep(state.step + 1),
    e: () => state.present && edit() };
  page.update = (next) => {
    if (next.parts.join("/") !== route.parts.join("/")) return false;
    fromRoute(next).catch(page.fail);
    return true;
  };
  await fromRoute(route);
};
