// A long list, and a long table, with everything around their rows.
import { button, el } from "./dom.js";
import { pager, virtualRows } from "./virtual.js";

const spacer = () => el("div", { class: "spacer", "aria-hidden": "true" });

/** The properties of a row in a list of which only a part is in the document. */
export const listItem = (index, size, identity, props) => ({
  role: "listitem", "aria-posinset": index + 1, "aria-setsize": size, "data-row": identity, ...props,
});

const withPages = (view, element, status, options) => {
  const pages = pager(view, status, {
    ...options,
    onPage: (rows, isDone) => {
      view.append(options.group ? options.group(view.items, rows) : rows);
      options.onPage?.(view.items, isDone);
    },
  });
  return Object.assign(Object.create(view), { element, start: pages.start, more: pages.more, status });
};

/** `make(item, index)` makes the content of a row with the props of `listItem`. */
export const longList = ({ label, make, empty, group, onPage, onScroll }) => {
  const status = el("p", { class: "liststatus", role: "status" });
  const [before, after] = [spacer(), spacer()];
  const rows = el("div", { role: "list", "aria-label": label, class: "rows" });
  const viewport = el("div", { class: "viewport", tabindex: "0", role: "group", "aria-label": `${label}, scrollable` },
    before, rows, after);
  let result = null;
  const view = virtualRows({ viewport, rows, before, after, make, onScroll, onNearEnd: () => result?.more() });
  result = withPages(view, el("div", { class: "longlist" }, viewport, status), status, { empty, group, onPage });
  return result;
};

const widthOf = (column, items) => {
  const longest = Math.max(column.label.length + 2, ...items.slice(0, 100).map((item) => column.text(item).length));
  return Math.max(6, Math.min(column.most ?? 36, longest + 2));
};

const headCell = (column) => el("th", {
  scope: "col", class: column.class, "aria-sort": column.sort,
}, column.onSort
  ? button([column.label, el("span", { "aria-hidden": "true" }, { ascending: " ↑", descending: " ↓" }[column.sort] ?? "")],
    column.onSort, { class: "sort" })
  : column.label);

/** Columns are { label, text(item), cell(item) → node, class, most, sort, onSort }. */
export const longTable = ({ label, columns, identity, rowProps = () => ({}), empty, onPage }) => {
  const status = el("p", { class: "liststatus", role: "status" });
  const cols = columns.map(() => el("col"));
  const blank = () => el("tbody", { "aria-hidden": "true" }, el("tr", {}, el("td", { colspan: columns.length, class: "blank" })));
  const [before, after, rows] = [blank(), blank(), el("tbody")];
  const table = el("table", { class: "long", "aria-label": label }, el("colgroup", {}, cols),
    el("thead", {}, el("tr", {}, columns.map(headCell))), before, rows, after);
  const viewport = el("div", { class: "viewport", tabindex: "0", role: "group", "aria-label": `${label}, scrollable` }, table);
  const fit = (items) => {
    const widths = columns.map((column) => widthOf(column, items));
    widths.forEach((width, index) => { cols[index].style.width = `${width}ch`; });
    table.style.minWidth = `${widths.reduce((a, b) => a + b, 0)}ch`;
  };
  const make = (item, index) => el("tr",
    { "aria-rowindex": index + 2, "data-row": identity(item, index), tabindex: "-1", ...rowProps(item) },
    columns.map((column, at) => el(at === 0 && column.isHead ? "th" : "td",
      { class: column.class, scope: at === 0 && column.isHead ? "row" : undefined, title: column.text(item) || undefined },
      column.cell(item))));
  let result = null;
  const view = virtualRows({
    viewport, rows, before: before.firstChild.firstChild, after: after.firstChild.firstChild, make,
    onNearEnd: () => result?.more(),
  });
  const grow = (items, isDone) => {
    table.setAttribute("aria-rowcount", isDone ? items.length + 1 : -1);
    if (items.length <= 1000) fit(items);
    onPage?.(items, isDone);
  };
  result = withPages(view, el("div", { class: "longlist" }, viewport, status), status, { empty, onPage: grow });
  return Object.assign(result, { fill(items) { view.set(items); grow(items, true); status.textContent = ""; } });
};
