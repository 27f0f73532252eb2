// Starts the page and shows the view that the address names.
import { get, takeToken, whenDenied } from "./api.js";
import { button, el } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { parse } from "./route.js";
import { askForToken, buildRail, markView, showConflictCount, showNode, views } from "./shell.js";

const main = document.getElementById("main");
let page = null;
let isFirst = true;

window.stemma = { shown: null };

/** Keeps the JSON that the view shows where tests find it, and says that the view is there. */
const ready = (shown) => {
  window.stemma.shown = shown;
  main.dataset.ready = "true";
};

const setTitle = (title) => { document.title = `${title} – Stemma`; };

const newPage = (route) => {
  const abort = new AbortController();
  const own = {
    main, route, signal: abort.signal,
    /** Does nothing if another view has taken the place of this one meanwhile. */
    ready: (shown) => { if (page === own) ready(shown); },
    loading: () => { delete main.dataset.ready; },
    setTitle,
    show: (...nodes) => { if (page === own) main.replaceChildren(...nodes); },
    heading: (title, ...rest) => {
      setTitle(title);
      return el("header", { class: "head" }, el("h1", { tabindex: "-1" }, title), ...rest);
    },
    fail: (error) => {
      if (page !== own || error.name === "AbortError" || error.status === 401) return;
      own.show(own.heading(views.find(({ name }) => name === route.view)?.label ?? "Not found"),
        el("div", { class: "problem", role: "alert" }, el("p", {}, error.message),
          button("Try again", () => start(true))));
      own.ready(null);
    },
    reload: () => { if (page === own) start(true); },
    close: () => abort.abort(),
  };
  return own;
};

const focusHeading = () => {
  if (!isFirst && !main.contains(document.activeElement)) {
    (main.querySelector("h1") ?? main).focus({ preventScroll: true });
  }
  isFirst = false;
};

const open = async (route) => {
  page?.onClose?.();
  page?.close();
  page = newPage(route);
  const own = page;
  main.replaceChildren();
  main.dataset.view = route.view;
  markView(route.view);
  try {
    if (!views.some(({ name }) => name === route.view)) throw new Error("There is no such view.");
    const view = await import(`./${route.view}.js`);
    if (page === own) await view.open(own, route);
  } catch (error) {
    own.fail(error);
  }
  if (page === own) focusHeading();
};

const start = async (isNew) => {
  const route = parse(location.hash);
  delete main.dataset.ready;
  if (!isNew && page && page.route.view === route.view && page.update?.(route)) return;
  await open(route);
};

const countConflicts = async () => {
  const counts = await get("/v1/conflicts/counts");
  showConflictCount(counts.reduce((sum, row) => sum + row.value + row.delete + row.cardinality + row.dangling, 0));
};

const restart = () => {
  get("/v1/node").then(showNode).catch(() => {});
  countConflicts().catch(() => {});
  start(true);
};

takeToken();
buildRail();
whenDenied(() => {
  if (main.dataset.view === "token") return;
  page?.close();
  page = null;
  askForToken(main, restart);
});
window.addEventListener("hashchange", () => { takeToken(); start(false); });
window.addEventListener("stemma:reload", () => page?.reload());
window.addEventListener("stemma:changed", () => countConflicts().catch(() => {}));
listenToKeys(() => page);
restart();
