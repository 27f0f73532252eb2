// The records of a model as a table, or one record.
import { models, pages } from "./api.js";
import { button, data, el, form, input, labelled, select, submitButton } from "./dom.js";
import { keyForm, valueNode, valueText } from "./format.js";
import { longTable } from "./list.js";
import { go, modelLink, query, recordLink, settle } from "./route.js";

const conditions = (model, state) => state.where.length > 0 && el("ul.chips", { "aria-label": "Conditions" },
  state.where.map((condition, index) => el("li.chip", data(condition), button("×",
    () => go(modelLink(model, { ...state, where: state.where.toSpliced(index, 1) })),
    { class: "quiet", "aria-label": `Remove ${condition}` }))));

const toolbar = (page, model, state, schema) => {
  const picker = select("model", schema.map(({ name }) => name), model);
  picker.addEventListener("change", () => go(modelLink(picker.value)));
  const where = input("where", "", { placeholder: "field=value, field~=text, field>=5" });
  const asOf = input("asOf", state.asOf, { placeholder: "now, yesterday, 2h, @17" });
  const submit = () =>
    go(modelLink(model, { ...state, asOf: asOf.value.trim(), where: [...state.where, where.value.trim()] }));
  page.search = where;
  return form({ class: "filters", role: "search", "aria-label": "Filter records" }, submit,
    el("div.line", labelled("Model", picker), labelled("Condition", where, { class: "field grow" }),
      labelled("As of", asOf), submitButton("Apply", "")),
    conditions(model, state));
};

const sorting = (model, state, field) => {
  const sort = { [field]: "ascending", [`-${field}`]: "descending" }[state.order[0]];
  const order = { ascending: [`-${field}`], descending: [] }[sort] ?? [field];
  return { label: field, sort, onSort: () => go(modelLink(model, { ...state, order })) };
};

const columnsOf = (model, state) => {
  const keys = model.key.map((name, index) => ({
    ...sorting(model.name, state, name), class: "mono", text: ({ key }) => valueText(key[name]),
    cell: ({ key }) => (index > 0 ? valueNode(key[name])
      : el("a", { href: recordLink(model.name, keyForm(key), { asOf: state.asOf }) }, valueNode(key[name]))),
  }));
  const mark = (row, name) => (row.conflicts?.includes(name) ? "conflict " : "");
  const fields = model.fields.filter(({ isKey }) => !isKey).map(({ name, type }) => ({
    ...sorting(model.name, state, name),
    class: /^(Int|Float|AWSTimestamp)/.test(type) ? "mono number" : "mono",
    text: (row) => mark(row, name) + valueText(row.fields[name]),
    cell: (row) => [el("span.mark", mark(row, name)), valueNode(row.fields[name])],
  }));
  const conflictText = ({ conflicts }) => conflicts?.join(", ") ?? "";
  return [...keys, ...fields,
    { label: "Conflicts", text: conflictText, cell: (row) => data(conflictText(row), "mark") }];
};

const openTable = async (page, route, schema) => {
  const name = route.name ?? schema[0]?.name;
  const model = schema.find((one) => one.name === name);
  if (!model) throw new Error("There is no such model.");
  if (!route.name) settle(modelLink(name));
  const { query: given } = route;
  const state = { where: given.getAll("where"), order: given.getAll("order"), asOf: given.get("asOf") };
  const table = longTable({
    page, label: `Records of ${name}`, columns: columnsOf(model, state), identity: ({ key }) => keyForm(key),
    rowClass: (row) => row.conflicts && "hasconflict", empty: "No records.", onPage: page.ready,
  });
  page.show(page.heading(`Records of ${name}`), toolbar(page, name, state, schema), table.element);
  const path = `/v1/records/${encodeURIComponent(name)}`;
  await table.start(pages(path, query({ ...state, limit: 200 }), page.signal));
};

export const open = async (page, route) => {
  const schema = await models();
  if (!route.form) return openTable(page, route, schema);
  const record = await import("./record.js");
  return record.open(page, route, schema);
};
