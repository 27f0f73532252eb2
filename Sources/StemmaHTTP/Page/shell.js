// The frame around the views: navigation, theme, the form for a token.
import { setToken } from "./api.js";
import { button, data, el, input, labelled } from "./dom.js";
import { number } from "./format.js";
import { nextTheme, startTheme } from "./theme.js";

export const views = [
  { name: "overview", label: "Overview" },
  { name: "events", label: "Events" },
  { name: "records", label: "Records" },
  { name: "conflicts", label: "Conflicts" },
  { name: "compare", label: "Compare" },
  { name: "files", label: "Files", needsAll: true },
  { name: "sql", label: "SQL", needsAll: true },
  { name: "peers", label: "Peers", needsAll: true },
];

const links = new Map();
const badge = el("span", { class: "badge", hidden: true });
const nodeName = el("span", { class: "node" });

const themeButton = () => {
  const label = el("span");
  startTheme((theme) => { label.textContent = `Theme: ${theme}`; });
  return button(label, nextTheme, { class: "quiet theme", title: "Change the theme (t)" });
};

/** Fills the navigation; without a node, the rights are unknown. */
export const buildRail = () => {
  const items = views.map(({ name, label }) => {
    const link = el("a", { href: name === "overview" ? "#/" : `#/${name}` }, label, name === "conflicts" && badge);
    links.set(name, link);
    return el("li", {}, link);
  });
  document.getElementById("rail").replaceChildren(
    el("div", { class: "brand" }, el("span", { class: "mark", "aria-hidden": "true" }), el("span", {}, "Stemma"), nodeName),
    el("nav", { "aria-label": "Views" }, el("ul", {}, items)),
    el("div", { class: "railend" }, el("span", { class: "hint" }, el("kbd", {}, "?"), " keys"), themeButton()));
  // The target of the skip link is no route, so the link moves the focus itself.
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
};

export const showNode = (node) => {
  nodeName.replaceChildren(data(node.name));
  const readsAll = node.read.includes("*");
  views.filter((view) => view.needsAll).forEach(({ name }) => { links.get(name).parentNode.hidden = !readsAll; });
};

export const showConflictCount = (count) => {
  badge.hidden = count === 0;
  badge.replaceChildren(el("span", { class: "unseen" }, ", open: "), number(count));
};

export const markView = (name) => links.forEach((link, view) => {
  if (view === name) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
});

/** Asks for a token in place of the view. */
export const askForToken = (main, onToken) => {
  const secret = input("token", "", { type: "password", required: true, dir: "ltr" });
  const submit = (event) => {
    event.preventDefault();
    setToken(secret.value.trim());
    onToken();
  };
  document.title = "Token needed – Stemma";
  main.dataset.view = "token";
  main.replaceChildren(el("form", { class: "token", on: { submit } },
    el("h1", {}, "Token needed"),
    el("p", {}, "This server answers only with a token. `stemma token create` makes one; it stays in this tab."),
    labelled("Token", secret), el("button", { type: "submit", class: "primary" }, "Continue")));
  main.dataset.ready = "true";
  secret.focus();
};
