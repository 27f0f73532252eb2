// One record: its fields, its history with branches, and what it was at each step.
import { modelPath, read } from "./api.js";
import { button, data, el, put, table } from "./dom.js";
import { editRecord } from "./edit.js";
import { nameLink } from "./event.js";
import {
  changeNode, count, isSame, keyOf, keyText, opNode, recordNode, time, timestampTime, valueNode,
} from "./format.js";
import { graphCell, graphWidth, lanesOf } from "./graph.js";
import { haveLines, lineDiffNode } from "./linediff.js";
import { listItem, longList } from "./list.js";
import { conflictLink, eventLink, go, link, modelLink, recordLink, settle } from "./route.js";
import { timeline } from "./timeline.js";

const orMissing = (request, missing = null) => request.catch((error) => {
  if (error.status === 404) return missing;
  throw error;
});

const reader = (page, path) => {
  const known = new Map();
  return (asOf) => {
    if (!known.has(asOf)) known.set(asOf, orMissing(page.get(path, { asOf })));
    return known.get(asOf);
  };
};

/** Who wrote a field: its version, author, event and siblings, as cells. */
const attribution = (decision, partition) => {
  const [winner, ...siblings] = decision?.candidates ?? [];
  if (!winner) return ["", el("span.dim", decision && "nobody"), "", ""];
  const mark = decision.conflict ? "conflict, " : "";
  return [
    String(winner.version),
    el("span", { title: timestampTime(winner.timestamp) }, winner.author && data(winner.author)),
    nameLink(winner.event, partition),
    el("span", { class: mark && "mark" }, siblings.length > 0 && mark + count(siblings.length, "sibling")),
  ];
};

const stepChange = (old, value) =>
  (haveLines(old, value) ? lineDiffNode(old, value) : changeNode(old, value));

const fieldProps = (name, value) => ({ "data-field": name, "data-value": JSON.stringify(value) });

const presentTable = ({ why, history }, { fields }) =>
  table("Fields", ["Field", "Value", "#Version", "Author", "Event", "Siblings"],
    Object.entries(fields).map(([name, value]) => {
      const decision = why.fields.find(({ field }) => field === name);
      const cells = [data(name), valueNode(value, "full"), ...attribution(decision, history[0]?.partition)];
      return { props: fieldProps(name, value), cells };
    }), { class: "fields" });

/** The record at a step, with the fields marked that differ from `old`, the record at the step before. */
const pastTable = ({ fields }, old) =>
  table("Fields", ["Field", "Value", "At this step"], Object.entries(fields).map(([name, value]) => {
    const from = old?.fields[name] ?? null;
    const isChanged = !isSame(value, from);
    const shown = isChanged ? stepChange(from, value) : valueNode(value, "full");
    return {
      props: { ...fieldProps(name, value), class: isChanged && "changed" },
      cells: [data(name), shown, isChanged && "changed"],
    };
  }), { class: "fields" });

const historyRow = (state, event, index) => {
  const isSelected = state.history.length - state.step === index;
  const fields = event.changes?.map(({ field }) => field) ?? Object.keys(event.fields);
  const position = `@${event.position}`;
  return el("div", listItem(index, state.history.length, position),
    graphCell(state.lanes, index, state.graphWidth),
    el("a.row.two", { href: state.at(position), "aria-current": isSelected && "step" },
      el("span", el("span.position", position), " ", opNode(event), " ",
        event.author && [data(event.author), " at "], data(event.event)),
      el("span.short", time(event.time), "  ", data(fields.join(", ")))),
    el("a", { href: eventLink(position), "aria-label": `Event ${position}` }, "event"));
};

const wordsNode = ({ field, words }) =>
  el("section", el("h3", data(field ?? "existence")), words.map((sentence) => el("p", data(sentence))));

const whySection = ({ fields, conflicts }) =>
  el("details.why", { open: fields.some(({ conflict }) => conflict) },
    el("summary", el("h2", "Why it is shown so")),
    [...fields, ...conflicts].filter(({ words }) => words?.length > 0).map(wordsNode));

const load = async (page, { name, form }, schema) => {
  const model = schema.find((one) => one.name === name);
  if (!model) throw new Error("There is no such model.");
  const path = modelPath("records", name, form);
  const [present, history, why] = await Promise.all([
    orMissing(read(path, {}, { signal: page.signal }), { data: null }),
    orMissing(page.get(modelPath("history", name, form)), []),
    orMissing(page.get(modelPath("why", name, form)), { fields: [], conflicts: [] }),
  ]);
  if (!present.data && history.length === 0) throw new Error("There is no such record, and there never was.");
  const lanes = lanesOf(history);
  return {
    model, form, present: present.data, etag: present.etag, history, why,
    lanes,
    graphWidth: graphWidth(lanes),
    key: present.data?.key ?? history[0]?.key ?? keyOf(form),
    steps: history.toReversed(),
    step: history.length,
    recordAt: reader(page, path),
    at: (asOf) => recordLink(name, form, { asOf }),
  };
};

// Only addresses have "none", before the first event; no request does.
const momentOf = (state, step) => (step === 0 ? "none" : `@${state.steps[step - 1].position}`);

const atStep = async (state, step) => {
  const at = (moment) => (moment > 0 ? state.recordAt(momentOf(state, moment)) : null);
  if (step === state.steps.length) return [state.present, undefined];
  return Promise.all([at(step), at(step - 1)]);
};

const missingText = ({ steps, step }) => (steps.slice(0, step).some(({ op }) => op === "delete")
  ? "It did not exist: it had been deleted." : "It did not exist yet.");

const actions = (state, edit) => {
  const isOpen = state.present?.conflicts?.length > 0 || state.why.conflicts.length > 0;
  return el("div.buttons",
    isOpen && el("a.button.primary", { href: conflictLink(state.model.name, state.form) }, "Merge"),
    el("a.button", { href: link("events", { model: state.model.name, key: state.form }) }, "Events"),
    state.present && button("Edit", edit, { class: "writing" }));
};

export const open = async (page, route, schema) => {
  const state = await load(page, route, schema);
  const place = el("div");
  const list = longList({ page, label: "History", make: (event, index) => historyRow(state, event, index) });
  let turn = 0;

  const show = async (request, missing) => {
    const mine = ++turn;
    const [record, old] = await request;
    if (mine !== turn) return;
    const fields = record && (old === undefined ? presentTable(state, record) : pastTable(record, old));
    put(place, fields ?? el("p.missing", missing));
    page.ready({ record, history: state.history, why: state.why });
  };
  const showStep = (step) => {
    state.step = step;
    slider.show(step);
    list.redraw();
    return show(atStep(state, step), missingText(state));
  };
  const showMoment = async (asOf) => {
    slider.say(["As of ", data(asOf)]);
    return show(state.recordAt(asOf).then((record) => [record, record]), "It did not exist then.");
  };
  const fromRoute = ({ query }) => {
    const asOf = query.get("asOf");
    if (!asOf) return showStep(state.steps.length);
    const step = ["none", ...state.steps.map(({ position }) => `@${position}`)].indexOf(asOf);
    return step >= 0 ? showStep(step) : showMoment(asOf);
  };
  const toStep = (wanted) => {
    const step = Math.max(0, Math.min(wanted, state.steps.length));
    settle(state.at(step === state.steps.length ? null : momentOf(state, step)));
    showStep(step).catch(page.fail);
  };
  const slider = timeline(state.steps, route.query.get("asOf"), toStep, (asOf) => go(state.at(asOf)));
  const edit = () => editRecord(state, page.reload);

  const fields = el("section.card", { "aria-label": "Fields" },
    recordNode(state.model.name, state.key), slider.element, place, whySection(state.why));
  const historyTitle = el("h2", `History, ${count(state.history.length, "event")}`);
  page.show(page.heading(`${state.model.name} ${keyText(state.key)}`, actions(state, edit)),
    el("div.record", fields, el("section.card.historycard", historyTitle, list.element)));
  list.fill(state.history);
  page.back = () => go(modelLink(state.model.name));
  page.keys = { ArrowLeft: () => toStep(state.step - 1), ArrowRight: () => toStep(state.step + 1),
    e: () => state.present && edit() };
  page.update = (next) => {
    if (next.name !== route.name || next.form !== route.form) return false;
    fromRoute(next).catch(page.fail);
    return true;
  };
  await fromRoute(route);
};
