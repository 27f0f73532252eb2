// One conflict side by side: the ancestor and the candidates, with buttons that fit its kind.
import { button, data, el, input, labelled } from "./dom.js";
import { valueControl } from "./edit.js";
import { isSame, kindText, timeNode, timestampTime, valueNode } from "./format.js";
import { inlineDiffNode, lineDiffNode } from "./linediff.js";
import { eventLink } from "./route.js";

const isLong = (value) => typeof value === "string" && value.includes("\n");

const difference = (ancestor, value) => {
  if (typeof ancestor !== "string" || typeof value !== "string" || ancestor === value) return valueNode(value, "full");
  return isLong(ancestor) || isLong(value) ? lineDiffNode(ancestor, value) : inlineDiffNode(ancestor, value);
};

const valueOf = (conflict, candidate) => {
  if (conflict.kind === "delete") return candidate.value ? "The record stays" : "The record is deleted";
  if (conflict.ancestor === undefined) return valueNode(candidate.value, "full");
  return difference(conflict.ancestor, candidate.value);
};

const eventNode = (candidate, events) => {
  const event = events.get(candidate.event);
  return event ? el("a", { href: eventLink(`@${event.position}`) }, data(candidate.event)) : data(candidate.event);
};

const about = (candidate, events) => {
  const message = events.get(candidate.event)?.message;
  return el("p", { class: "about" }, candidate.author && [data(candidate.author, "strong"), " at "], data(candidate.origin, "strong"),
    ", ", timeNode(timestampTime(candidate.timestamp)), ", version ", String(candidate.version), ", ", eventNode(candidate, events),
    message && [el("br"), data(message, "message")]);
};

/** The choice that stands for a candidate. Names of events of other partitions can be equal; numbers are not. */
export const choiceOf = (conflict, candidate) => {
  const label = `candidate ${candidate.n}`;
  if (conflict.kind === "delete") return candidate.value ? { body: { keep: true }, label } : { body: { delete: true }, label };
  if (conflict.kind === "dangling") return null;
  const isUnique = conflict.candidates.filter(({ event }) => event === candidate.event).length === 1;
  const isHere = conflict.kind === "value";
  return { body: { take: isUnique && isHere ? candidate.event : candidate.n }, label };
};

const takeLabel = (conflict, candidate) => {
  if (conflict.kind === "delete") return candidate.value ? "Keep the record" : "Delete the record";
  return `Take ${candidate.n}`;
};

const candidateNode = (conflict, candidate, events, isChosen, choose) => {
  const choice = choiceOf(conflict, candidate);
  const isEqual = conflict.ancestor !== undefined && isSame(conflict.ancestor, candidate.value);
  return el("div", { class: isChosen(choice) ? "candidate chosen" : "candidate", "data-candidate": candidate.n,
    "data-value": JSON.stringify(candidate.value) },
  el("h3", {}, `Candidate ${candidate.n}`, candidate.n === 1 && el("span", { class: "tag" }, "shown"),
    isChosen(choice) && el("span", { class: "tag taken" }, "chosen"), isEqual && el("span", { class: "tag" }, "as the ancestor")),
  about(candidate, events), el("div", { class: "content" }, valueOf(conflict, candidate)),
  choice && button([takeLabel(conflict, candidate), " ", el("kbd", { "aria-hidden": "true" }, String(candidate.n))],
    () => choose(choice), { "aria-pressed": String(isChosen(choice)) }));
};

const ancestorNode = (conflict) => (conflict.kind !== "value" ? null
  : el("div", { class: "candidate ancestor" }, el("h3", {}, "Common ancestor"),
    el("p", { class: "about" }, "The value before the candidates diverged"),
    el("div", { class: "content" }, conflict.ancestor === undefined ? el("span", { class: "dim" }, "not known")
      : valueNode(conflict.ancestor, "full"))));

/** A value of one's own. */
const ownEditor = (conflict, type, start, use) => {
  const { element, read, control } = valueControl(`Own value of ${conflict.field}`, type, start);
  const problem = el("p", { class: "bad", role: "alert" });
  const take = () => {
    try {
      use({ body: { set: read() }, label: "own value" });
    } catch {
      problem.textContent = "This is not a value of its type.";
    }
  };
  control.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || control.tagName === "INPUT")) {
      event.preventDefault();
      event.stopPropagation();
      take();
    }
  });
  return el("div", { class: "own" }, element, problem, button("Use this value", take));
};

const danglingChoices = (conflict, target, isChosen, choose) => {
  const parts = (target?.key ?? ["id"]).map((name) => [name, input(name, "")]);
  const link = (event) => {
    event.preventDefault();
    choose({ body: { set: Object.fromEntries(parts.map(([name, control]) => [name, control.value])) }, label: "another record" });
  };
  const pick = (label, body) => button(label, () => choose({ body, label: label.toLowerCase() }),
    { "aria-pressed": String(isChosen({ body })) });
  return el("div", { class: "dangling" },
    el("form", { class: "line", on: { submit: link } }, parts.map(([name, control]) =>
      labelled([data(target?.name ?? "record"), " ", data(name)], control)), el("button", { type: "submit" }, "Link this record")),
    el("div", { class: "buttons" }, pick("Clear the reference", { unlink: true }), pick("Delete the record", { delete: true })));
};

/** `state` is { chosen, isCurrent, isEditing, events, type, target }; `act` is { choose, edit, clear }. */
export const conflictNode = (conflict, index, state, act) => {
  const isChosen = (choice) => Boolean(state.chosen && choice && isSame(state.chosen.body, choice.body));
  const name = conflict.kind === "delete" ? "existence" : conflict.field ?? "whole record";
  const canWrite = conflict.kind === "value" && conflict.field !== null;
  const start = conflict.candidates[0]?.value ?? null;
  return el("section", { class: `conflict ${state.isCurrent ? "current" : ""}`, "data-field": conflict.field ?? "",
    "data-kind": conflict.kind, "aria-labelledby": `conflict${index}` },
  el("header", {}, el("h2", { id: `conflict${index}`, tabindex: "-1" }, data(name), el("span", { class: `kind ${conflict.kind}` }, kindText(conflict.kind))),
    el("span", { class: "choice" }, state.chosen ? ["Chosen: ", state.chosen.label, " ",
      button("Leave open", act.clear, { class: "quiet" })] : "Open")),
  el("div", { class: "candidates" }, ancestorNode(conflict),
    conflict.candidates.map((candidate) => candidateNode(conflict, candidate, state.events, isChosen, act.choose))),
  conflict.kind === "dangling" && danglingChoices(conflict, state.target, isChosen, act.choose),
  canWrite && (state.isEditing ? ownEditor(conflict, state.type, state.chosen?.body.set ?? start, act.choose)
    : button(["Write a value of your own ", el("kbd", { "aria-hidden": "true" }, "e")], act.edit, { class: "quiet" })));
};
