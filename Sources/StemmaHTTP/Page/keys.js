// Keys that work everywhere. A view adds its own as `page.keys`.
import { el } from "./dom.js";
import { go } from "./route.js";
import { nextTheme } from "./theme.js";

const places = { o: "overview", e: "events", r: "records", c: "conflicts", d: "compare", f: "files", s: "sql", p: "peers" };

const help = [
  ["/", "Go to the search or filter of the view"],
  ["j, k or ↓, ↑", "Move in the list"],
  ["Enter", "Open what is selected; in a merge, resolve what is chosen"],
  ["Esc", "Close, or go back"],
  ["g, then o e r c d f s p", "Overview, events, records, conflicts, compare, files, SQL, peers"],
  ["←, →", "In a record: step through its history"],
  ["1 … 9", "In a merge: choose a candidate"],
  ["e", "In a merge: write a value of your own; in a record: edit"],
  ["Ctrl+Enter", "Run the query, or save the form"],
  ["t", "Theme: system, light, dark"],
  ["?", "This help"],
];

const showHelp = () => {
  const close = el("button", { type: "button", on: { click: () => dialog.close() } }, "Close");
  const rows = help.map(([key, text]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, text)));
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help" },
    el("h2", { id: "help" }, "Keys"), el("table", {}, el("tbody", {}, rows)), el("div", { class: "buttons" }, close));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};

const isTyping = (target) => target.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea, select");

let prefix = 0;

const common = (page, event) => ({
  "/": () => page.search?.focus(),
  j: () => page.list?.move(1),
  k: () => page.list?.move(-1),
  ArrowDown: () => page.list?.move(1),
  ArrowUp: () => page.list?.move(-1),
  g: () => { prefix = Date.now(); },
  t: nextTheme,
  "?": showHelp,
  Escape: () => page.back?.(),
  Enter: page.list && event.target === document.body ? () => page.list.open() : undefined,
});

const escapeInput = (event, page) => {
  if (event.key === "Escape") event.target.blur();
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) page.submit?.();
  else return;
  event.preventDefault();
};

const onKey = (event, page) => {
  if (!page || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) { escapeInput(event, page); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const hasPrefix = Date.now() - prefix < 1500;
  prefix = 0;
  const action = hasPrefix && places[event.key]
    ? () => go(places[event.key] === "overview" ? "#/" : `#/${places[event.key]}`)
    : page.keys?.[event.key] ?? common(page, event)[event.key];
  // A slider, a button and a link have keys of their own.
  const isOwn = event.target.matches("[type=range]") && event.key.startsWith("Arrow")
    || event.key === "Enter" && event.target.matches("a, button, summary");
  if (!action || isOwn) return;
  event.preventDefault();
  action(event);
};

export const listenToKeys = (currentPage) => document.addEventListener("keydown", (event) => onKey(event, currentPage()));
