// Keys that work everywhere. A view adds its own as `page.keys`.
import { button, el, openDialog } from "./dom.js";
import { go, viewLink } from "./route.js";
import { focusNotice } from "./notice.js";
import { nextTheme } from "./theme.js";

const places = {
  o: "overview", e: "events", r: "records", c: "conflicts", d: "compare", f: "files", s: "sql", p: "peers",
};

const help = [
  ["/", "Search or filter"],
  ["j, k, ↓, ↑", "Move in the list"],
  ["Enter", "Open; in a merge, resolve what is chosen"],
  ["Esc", "Close, or go back"],
  ["g, then o e r c d f s p", "Overview, events, records, conflicts, compare, files, SQL, peers"],
  ["←, →", "Step through the history of a record"],
  ["1 … 9", "Choose a candidate"],
  ["e", "Edit a record; in a merge, write a value"],
  ["Ctrl+Enter", "Run, or save"],
  ["n", "Go to the notice, such as to undo"],
  ["t", "Theme: system, light, dark"],
  ["?", "This help"],
];

const helpRow = ([key, text]) => el("tr", el("th", { scope: "row" }, el("kbd", key)), el("td", text));

const showHelp = () => openDialog("Keys", (dialog) => [
  el("table", el("tbody", help.map(helpRow))),
  el("div.buttons", button("Close", () => dialog.close())),
]);

const isTyping = (target) => target.matches("input:not([type=checkbox], [type=range]), textarea, select");

let prefix = 0;

const common = (page) => ({
  "/": () => page.search?.focus(),
  j: () => page.list?.move(1),
  k: () => page.list?.move(-1),
  ArrowDown: () => page.list?.move(1),
  ArrowUp: () => page.list?.move(-1),
  g: () => { prefix = Date.now(); },
  n: focusNotice,
  t: nextTheme,
  "?": showHelp,
  Escape: () => page.back?.(),
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
  const place = hasPrefix && places[event.key];
  const action = place ? () => go(viewLink(place)) : page.keys?.[event.key] ?? common(page)[event.key];
  const isOwn = event.target.matches("[type=range]") && event.key.startsWith("Arrow")
    || event.key === "Enter" && event.target.matches("a, button, summary");
  if (!action || isOwn) return;
  event.preventDefault();
  action(event);
};

export const listenToKeys = (currentPage) =>
  document.addEventListener("keydown", (event) => onKey(event, currentPage()));
