// The frame around the views: navigation, theme, the form for a token.
import { setToken } from "./api.js";
import { button, data, el, form, input, labelled, put, submitButton, svg } from "./dom.js";
import { kinds, number } from "./format.js";
import { viewLink } from "./route.js";
import { nextTheme, startTheme } from "./theme.js";

const labels = ["Overview", "Events", "Records", "Conflicts", "Compare", "Files", "SQL", "Peers"];
const needRights = ["files", "sql", "peers"];
export const views = labels.map((label) => ({ name: label.toLowerCase(), label }));

const links = new Map();
const badge = el("span.badge", { hidden: true });
const nodeName = el("span.nodename");

const logo = () => svg("svg.logo", { viewBox: "4 2 24 28", "aria-hidden": "true" },
  svg("path", { d: "M16 7v6M16 13L8 24M16 13l8 11" }),
  [[16, 7], [8, 25], [24, 25]].map(([cx, cy]) => svg("circle", { cx, cy, r: 3 })));

const themeButton = () => {
  const label = el("span");
  startTheme((theme) => { label.textContent = `Theme: ${theme}`; });
  return button(label, nextTheme, { class: "quiet theme" });
};

export const buildRail = () => {
  const items = views.map(({ name, label }) => {
    const link = el("a", { href: viewLink(name) }, label, name === "conflicts" && badge);
    links.set(name, link);
    return el("li", link);
  });
  put(document.getElementById("rail"),
    el("div.brand", logo(), el("span", "Stemma"), nodeName),
    el("nav", { "aria-label": "Views" }, el("ul", items)),
    el("div.railend", el("span.hint", el("kbd", "?"), " keys"), themeButton()));
  // The target of the skip link is no route, so the link moves the focus itself.
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
};

export const showNode = (node) => {
  put(nodeName, data(node.name));
  document.body.classList.toggle("readonly", node.write.length === 0);
  needRights.forEach((name) => { links.get(name).parentNode.hidden = !node.read.includes("*"); });
};

export const showConflictCount = (counts) => {
  const count = counts.reduce((sum, row) => kinds.reduce((inner, kind) => inner + row[kind], sum), 0);
  badge.hidden = count === 0;
  put(badge, el("span.unseen", ", open: "), number(count));
};

export const markView = (name) => links.forEach((link, view) => {
  if (view === name) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
});

export const askForToken = (main, isRefused, onToken) => {
  const secret = input("token", "", { type: "password", required: true, dir: "ltr" });
  document.title = "Token needed – Stemma";
  main.dataset.view = "token";
  const submit = () => {
    setToken(secret.value.trim());
    onToken();
  };
  put(main, form({ class: "token" }, submit, el("h1", "Token needed"),
    el("p", "This server answers only with a token. `stemma token create` makes one; it stays in this tab."),
    isRefused && el("p.bad", { role: "alert" }, "The server does not know this token, or it has expired."),
    labelled("Token", secret), submitButton("Continue")));
  main.dataset.ready = "true";
  secret.focus();
};
