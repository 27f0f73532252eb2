// A long list, and a long table, with everything around their rows.
import { button, el } from "./dom.js";
import { pager, virtualRows } from "./virtual.js";

export const listItem = (index, size, identity, props) => ({
  role: "listitem", "aria-posinset": index + 1, "aria-setsize": size, "data-row": identity, ...props,
});

const build = ({ page, label, make, empty, onScroll, onPage, group = (_, rows) => rows }, parts) => {
  const viewport = el("div.viewport", { tabindex: "0", role: "group", "aria-label": `${label}, scrollable` },
    parts.content);
  const status = el("p.status", { role: "status" });
  const view = virtualRows({ ...parts, viewport, make, onScroll, onNearEnd: () => pages.more() });
  const result = Object.create(view, Object.getOwnPropertyDescriptors({
    element: el("div.longlist", viewport, status),
    status,
    isWhole: false,
    /** How many items there are, or -1 while that is unknown, as aria-setsize has it. */
    get size() { return result.isWhole ? view.items.length : -1; },
    start: (source) => pages.start(source),
    fill(items) {
      result.isWhole = true;
      view.set(items);
      onPage?.(items);
    },
  }));
  const pages = pager(view, status, {
    empty,
    onPage: (rows, isDone) => {
      result.isWhole = isDone;
      view.append(group(view.items, rows));
      onPage?.(view.items);
    },
    onFailure: () => page.ready(null),
  });
  page?.use(result);
  return result;
};

export const longList = (options) => {
  const spacer = () => el("div", { "aria-hidden": "true" });
  const [before, after] = [spacer(), spacer()];
  const rows = el("div.rows", { role: "list", "aria-label": options.label });
  return build(options, { before, after, rows, content: [before, rows, after] });
};

/** The width of a column in characters. The first rows decide, so that it stays as more rows come. */
const widthOf = (column, items) => {
  const lengths = items.slice(0, 100).map((item) => column.text(item).length);
  return Math.max(6, Math.min(column.most ?? 36, Math.max(column.label.length + 2, ...lengths) + 2));
};

const arrows = { ascending: " ↑", descending: " ↓" };
const sortButton = ({ label, sort, onSort }) =>
  button([label, el("span", { "aria-hidden": "true" }, arrows[sort] ?? "")], onSort, { class: "sort" });
const head = (column) => el("th", { scope: "col", class: column.class, "aria-sort": column.sort },
  column.onSort ? sortButton(column) : column.label);

const cellNode = (column, item, at) => el(at === 0 ? "th" : "td",
  { class: column.class, scope: at === 0 && "row", title: column.text(item) || null }, column.cell(item));

/**
 * Columns are { label, text(item), cell(item) → node, class, most, sort, onSort }.
 * The first one is the head of its row.
 */
export const longTable = ({ columns, identity, rowClass = () => null, onPage, ...options }) => {
  const cols = columns.map(() => el("col"));
  const spacer = () => el("td.blank", { colspan: columns.length });
  const [before, after, rows] = [spacer(), spacer(), el("tbody")];
  const outer = (cell) => el("tbody", { "aria-hidden": "true" }, el("tr", cell));
  const table = el("table.long", { "aria-label": options.label }, el("colgroup", cols),
    el("thead", el("tr", columns.map(head))), outer(before), rows, outer(after));
  const make = (item, index) => el("tr",
    { "aria-rowindex": index + 2, "data-row": identity(item, index), tabindex: "-1", class: rowClass(item) },
    columns.map((column, at) => cellNode(column, item, at)));
  const grow = (items) => {
    table.setAttribute("aria-rowcount", list.isWhole ? items.length + 1 : -1);
    const widths = columns.map((column) => widthOf(column, items));
    widths.forEach((width, index) => { cols[index].style.width = `${width}ch`; });
    table.style.minWidth = `${widths.reduce((a, b) => a + b, 0)}ch`;
    onPage?.(items);
  };
  const list = build({ ...options, make, onPage: grow }, { before, after, rows, content: table });
  return list;
};
