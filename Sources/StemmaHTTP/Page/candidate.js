// One conflict side by side: the ancestor and the candidates, with buttons that fit its kind.
import { button, data, el, form, input, labelled, submitButton } from "./dom.js";
import { valueControl } from "./edit.js";
import { isSame, kindText, timeNode, timestampTime, valueNode } from "./format.js";
import { differenceNode } from "./linediff.js";
import { eventLink } from "./route.js";

const key = (name) => el("kbd", { "aria-hidden": "true" }, name);

const about = ({ author, origin, timestamp, version, event }, events) => {
  const known = events.get(event);
  return el("p.about", author && [data(author, "strong"), " at "], data(origin, "strong"), ", ",
    timeNode(timestampTime(timestamp)), `, version ${version}, `,
    known ? el("a", { href: eventLink(`@${known.position}`) }, data(event)) : data(event),
    known?.message && [el("br"), data(known.message, "message")]);
};

/** The choice that stands for a candidate. The server compares the numbers with what was shown. */
export const choiceOf = ({ kind }, { n, value }) => {
  const label = `candidate ${n}`;
  if (kind === "dangling") return null;
  if (kind === "delete") return { label, body: value ? { keep: true } : { delete: true } };
  return { label, body: { take: n } };
};

const wordsOf = ({ kind }, { value, n }) => (kind !== "delete" ? [`Take ${n}`]
  : value ? ["Keep the record", "The record stays"] : ["Delete the record", "The record is deleted"]);

const candidateNode = (conflict, candidate, state, choose) => {
  const choice = choiceOf(conflict, candidate);
  const isChosen = state.isChosen(choice?.body);
  const [label, text] = wordsOf(conflict, candidate);
  const { n, value } = candidate;
  return el("div.candidate",
    { class: isChosen && "chosen", "data-candidate": n, "data-value": JSON.stringify(value) },
    el("h3", `Candidate ${n}`, n === 1 && el("span.tag", "shown"),
      isChosen && el("span.tag.taken", "chosen")),
    about(candidate, state.events), el("div.content", text ?? differenceNode(conflict.ancestor, value)),
    choice && button([label, key(n)], () => choose(choice),
      { "aria-pressed": String(isChosen) }));
};

const ancestorNode = ({ ancestor }) => el("div.candidate.ancestor", el("h3", "Common ancestor"),
  el("p.about", "The value before the candidates diverged"),
  el("div.content", ancestor === undefined ? el("span.dim", "not known") : valueNode(ancestor, "full")));

const ownEditor = (conflict, { type, chosen }, use) => {
  const start = chosen?.own ?? conflict.candidates[0].value;
  const own = valueControl(`Own value of ${conflict.field}`, type, start);
  const { element, control } = own;
  const problem = el("p.bad", { role: "alert" });
  const take = () => {
    // The value of the first candidate, as it was, is that candidate.
    if (!own.isTouched) return use(chosen ?? choiceOf(conflict, conflict.candidates[0]));
    try {
      use({ json: own.read(), own: control.value, label: "own value" });
    } catch {
      problem.textContent = "This is not a value of its type.";
    }
    return undefined;
  };
  control.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || control.tagName === "INPUT")) return;
    event.preventDefault();
    take();
  });
  return el("div.own", element, problem, button("Use this value", take));
};

const danglingChoices = ({ target, isChosen }, choose) => {
  const parts = (target?.key ?? ["id"]).map((name) => [name, input(name, "")]);
  const submit = () => {
    const key = Object.fromEntries(parts.map(([name, { value }]) => [name, value]));
    choose({ body: { set: key }, label: "another record" });
  };
  const pick = (label, body) => button(label, () => choose({ body, label: label.toLowerCase() }),
    { "aria-pressed": String(isChosen(body)) });
  return el("div.own", form({ class: "line" }, submit,
    parts.map(([name, control]) => labelled([data(target?.name ?? "Record"), " ", data(name)], control)),
    submitButton("Link this record", "")),
  el("div.buttons",
    pick("Clear the reference", { unlink: true }), pick("Delete the record", { delete: true })));
};

const ownValue = (conflict, state, act) => (state.isEditing ? ownEditor(conflict, state, act.choose)
  : button(["Write a value of your own", key("e")], act.edit, { class: "quiet" }));

const chosenNode = ({ chosen }, act) => el("span.dim", chosen
  ? ["Chosen: ", chosen.label, " ", button("Leave open", () => act.choose(null), { class: "quiet" })]
  : "Open");

/** `state` is what the merge knows of this conflict; `act` chooses, or opens the editor. */
export const conflictNode = (conflict, index, state, act) => {
  const { kind, field } = conflict;
  state.isChosen = (body) => Boolean(state.chosen?.body && body && isSame(state.chosen.body, body));
  const title = `conflict${index}`;
  return el("section.conflict", {
    class: state.isCurrent && "current", "aria-labelledby": title,
    "data-field": field ?? "", "data-kind": kind,
  },
  el("header", el("h2", { id: title, tabindex: "-1" },
    data(kind === "delete" ? "existence" : field ?? "whole record"), el("span.kind", kindText(kind))),
  chosenNode(state, act)),
  el("div.candidates", kind === "value" && ancestorNode(conflict),
    conflict.candidates.map((candidate) => candidateNode(conflict, candidate, state, act.choose))),
  kind === "dangling" && danglingChoices(state, act.choose),
  kind === "value" && field !== null && ownValue(conflict, state, act));
};
