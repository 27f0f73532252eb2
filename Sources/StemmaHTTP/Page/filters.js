// The filter form of the log.
import { button, el, form, input, labelled, select, submitButton } from "./dom.js";
import { operations, readableKey, typedKey } from "./format.js";
import { query } from "./route.js";

const texts = [
  ["key", "Key (with a model)", "value, or part=value"], ["partition", "Partition", "pattern"],
  ["origin", "Origin", ""], ["author", "Author", ""], ["field", "Field", ""], ["commit", "Commit", ""],
  ["since", "Since", "2h, @17, 2026-11-21"], ["until", "Until", "time or @17"],
];
const names = ["grep", "model", "op", ...texts.map(([name]) => name)];

const isSingle = (name) => ["since", "until"].includes(name);
const shown = (filter, name) =>
  (name === "key" ? readableKey(filter.get("key") ?? "") : filter.getAll(name).join(" | "));

/** The values of a filter; several are typed with "|" between them. */
const values = (name, text) => (isSingle(name) ? [text.trim()] : text.split("|").map((part) => part.trim()));

/** An untouched key stays as it is: its readable form can be ambiguous. */
const keyOf = (filter, models, { model, key }) => {
  if (!key.value.trim()) return "";
  if (key.value === key.defaultValue && model.value === (filter.get("model") ?? "")) return filter.get("key");
  return typedKey(key.value, models.find(({ name }) => name === model.value)?.key ?? []);
};

export const filterOf = (parameters) =>
  query(Object.fromEntries(names.map((name) => [name, parameters.getAll(name)])));

export const filterForm = (filter, models, extra, onChange) => {
  const search = input("grep", shown(filter, "grep"),
    { type: "search", placeholder: "message, author, key, value" });
  const controls = {
    grep: search,
    model: select("model", [["", "all"], ...models.map(({ name }) => name)], filter.get("model")),
    op: select("op", [["", "all"], ...operations], filter.get("op")),
    ...Object.fromEntries(texts.map(([name, , placeholder]) =>
      [name, input(name, shown(filter, name), { placeholder })])),
  };
  const apply = () => onChange(query({
    ...Object.fromEntries(names.map((name) => [name, values(name, controls[name].value)])),
    key: keyOf(filter, models, controls),
  }));
  const clear = () => {
    names.forEach((name) => { controls[name].value = ""; });
    apply();
  };
  const used = texts.filter(([name]) => filter.has(name)).length;
  const more = el("details", { open: used > 0 },
    el("summary", used > 0 ? `More filters (${used} set)` : "More filters"),
    el("div.grid", texts.map(([name, label]) => labelled(label, controls[name]))));
  const element = form({ class: "filters", role: "search", "aria-label": "Filter events" }, apply,
    el("div.line", labelled("Search", search, { class: "field grow" }),
      labelled("Model", controls.model), labelled("Operation", controls.op), submitButton("Filter", ""),
      [...filter].length > 0 && button("Clear", clear, { class: "quiet" }), extra),
    more);
  [controls.model, controls.op].forEach((control) => control.addEventListener("change", apply));
  return { element, search };
};
