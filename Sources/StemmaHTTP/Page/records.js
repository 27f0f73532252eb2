// The records of a model as a table, or one record.
import { models, pages } from "./api.js";
import { button, data, el, input, labelled, select } from "./dom.js";
import { keyForm, valueNode, valueText } from "./format.js";
import { longTable } from "./list.js";
import { go, modelLink, query, recordLink, settle } from "./route.js";

const pageSize = 200;

const stateOf = (parameters) => ({
  where: parameters.getAll("where"), order: parameters.getAll("order"), asOf: parameters.get("asOf") ?? "",
});

const conditions = (model, state) => {
  const remove = (index) => go(modelLink(model, { ...state, where: state.where.filter((_, at) => at !== index) }));
  return state.where.length === 0 ? null : el("ul", { class: "chips", "aria-label": "Conditions" },
    state.where.map((condition, index) => el("li", {}, data(condition),
      button("×", () => remove(index), { class: "quiet", "aria-label": `Remove ${condition}` }))));
};

const toolbar = (page, model, state, schema) => {
  const picker = select("model", schema.map(({ name }) => name), model,
    { on: { change: () => go(modelLink(picker.value)) } });
  const where = input("where", "", { placeholder: "field=value, field~=text, field>=5" });
  const asOf = input("asOf", state.asOf, { placeholder: "now, yesterday, 2h, @17" });
  const submit = (event) => {
    event.preventDefault();
    const added = where.value.trim();
    go(modelLink(model, { ...state, asOf: asOf.value.trim(), where: added ? [...state.where, added] : state.where }));
  };
  page.search = where;
  return el("form", { class: "filters", role: "search", "aria-label": "Filter records", on: { submit } },
    el("div", { class: "line" }, labelled("Model", picker), labelled("Condition", where, { class: "field grow" }),
      labelled("As of", asOf), el("button", { type: "submit" }, "Apply")),
    conditions(model, state));
};

/** A click sorts by the column, a second one backwards, a third one not at all. */
const sorting = (model, state, field) => {
  const sort = { [field]: "ascending", [`-${field}`]: "descending" }[state.order[0]];
  const next = { ascending: [`-${field}`], descending: [] }[sort] ?? [field];
  return { sort, onSort: () => go(modelLink(model, { ...state, order: next })) };
};

const linkTo = (row, state) => recordLink(row.model, keyForm(row.key), { asOf: state.asOf });

const columnsOf = (model, state) => {
  const keys = model.key.map((name, index) => ({
    label: name, isHead: index === 0, text: (row) => valueText(row.key[name]), ...sorting(model.name, state, name),
    class: "mono",
    cell: (row) => (index > 0 ? valueNode(row.key[name]) : el("a", { href: linkTo(row, state) }, valueNode(row.key[name]))),
  }));
  const isMarked = (row, name) => row.conflicts?.includes(name);
  const fields = model.fields.filter((field) => !field.isKey).map(({ name, type }) => ({
    label: name, text: (row) => valueText(row.fields[name]), ...sorting(model.name, state, name),
    class: /^(Int|Float|AWSTimestamp)/.test(type) ? "mono number" : "mono",
    cell: (row) => [isMarked(row, name) && el("span", { class: "mark", title: "open conflict" }, "conflict "),
      valueNode(row.fields[name])],
  }));
  const other = (row) => (row.conflicts ?? []).filter((name) => !model.fields.some((field) => field.name === name));
  const conflicts = { label: "Conflicts", most: 20, class: "mono", text: (row) => (row.conflicts ?? []).join(", "),
    cell: (row) => (row.conflicts ? el("span", { class: other(row).length > 0 ? "mark" : "" }, data(row.conflicts.join(", "))) : "") };
  return [...keys, ...fields, conflicts];
};

const openTable = async (page, route, schema) => {
  const name = route.parts[0] ? decodeURIComponent(route.parts[0]) : schema[0]?.name;
  const model = schema.find((one) => one.name === name);
  if (!model) throw new Error(name ? `There is no model ${name}.` : "The schema has no models.");
  if (!route.parts[0]) settle(modelLink(name));
  const state = stateOf(route.query);
  const table = longTable({
    label: `Records of ${name}`, columns: columnsOf(model, state), identity: (row) => keyForm(row.key),
    rowProps: (row) => ({ class: row.conflicts ? "hasconflict" : undefined }), empty: "No records.",
    onPage: (items) => page.ready(items),
  });
  page.show(page.heading(`Records of ${name}`), toolbar(page, name, state, schema), table.element);
  page.list = table;
  page.onClose = () => table.close();
  const path = `/v1/records/${encodeURIComponent(name)}`;
  await table.start(pages(path, query({ ...state, limit: pageSize }), page.signal));
};

export const open = async (page, route) => {
  const schema = await models();
  if (route.parts.length < 2) return openTable(page, route, schema);
  const record = await import("./record.js");
  return record.open(page, route, schema);
};
