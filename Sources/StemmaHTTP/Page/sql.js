// A query on the tables, read-only.
import { button, data, el, form, labelled, put, submitButton } from "./dom.js";
import { count, valueNode, valueText } from "./format.js";
import { longTable } from "./list.js";
import { go, link } from "./route.js";

const limit = 100000;
const tablesQuery = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name";

/** RFC 4180: quotes where they are needed, lines end with CR LF. An empty cell is null, as in an import. */
const csvCell = (value) => {
  if (value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvLine = (cells) => `${cells.map(csvCell).join(",")}\r\n`;
const csv = (names, rows) =>
  [names, ...rows.map((row) => names.map((name) => row[name]))].map(csvLine).join("");

const download = (names, rows) => {
  const url = URL.createObjectURL(new Blob([csv(names, rows)], { type: "text/csv" }));
  el("a", { href: url, download: "result.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};

const columnsOf = (rows) => Object.keys(rows[0] ?? {}).map((name) => ({
  label: name, class: typeof rows[0][name] === "number" ? "mono number" : "mono",
  text: (row) => valueText(row[name]), cell: (row) => valueNode(row[name]),
}));

const selectAll = (name) => `SELECT * FROM "${name.replaceAll('"', '""')}" LIMIT 100`;

const tableList = (tables, use) => el("details.tables", el("summary", count(tables.length, "table")),
  el("ul.plain", tables.map(({ name, sql }) => el("li",
    button(data(name), () => use(selectAll(name)), { class: "quiet mono" }),
    el("pre", data(sql ?? ""))))));

const result = async (page, sql, place, status) => {
  status.textContent = "Running…";
  try {
    const rows = await page.get("/v1/query", { sql, limit });
    const names = Object.keys(rows[0] ?? {});
    const identity = (_, index) => index + 1;
    const table = longTable({ page, label: "Result", columns: columnsOf(rows), identity });
    put(status, count(rows.length, "row"), rows.length === limit && ", as many as are read", " ",
      rows.length > 0 && button("Export CSV", () => download(names, rows)));
    put(place, rows.length > 0 && table.element);
    table.fill(rows);
    page.ready(rows);
  } catch (error) {
    if (error.name === "AbortError") return;
    put(status, el("span.bad", { role: "alert" }, data(error.message)));
    page.ready(null);
  }
};

export const open = async (page, route) => {
  const sql = route.query.get("sql") ?? "";
  const text = el("textarea", { rows: 4, spellcheck: "false", dir: "ltr", name: "sql", class: "mono" }, sql);
  const status = el("p.status", { role: "status" });
  const place = el("div.resultplace");
  const run = () => {
    if (text.value.trim() === sql.trim() && sql) result(page, sql, place, status);
    else go(link("sql", { sql: text.value.trim() }));
  };
  const use = (query) => { text.value = query; run(); };
  const tables = await page.get("/v1/query", { sql: tablesQuery }).catch((error) => {
    if (error.status === 403) throw error;
    return [];
  });
  page.show(page.heading("SQL"), form({ class: "filters" }, run, labelled("One SELECT statement", text),
    el("div.line", submitButton("Run"), status)),
  tableList(tables, use), place);
  page.search = text;
  page.submit = run;
  if (sql) await result(page, sql, place, status);
  else page.ready(tables);
};
