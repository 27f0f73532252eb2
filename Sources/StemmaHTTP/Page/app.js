// Starts the page and shows the view that the address names.
import { get, hasToken, takeToken, whenDenied, whenMissing } from "./api.js";
import { button, data, el, put } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { bannerOf } from "./notice.js";
import { parse } from "./route.js";
import { askForToken, buildRail, markView, showConflictCount, showNode, views } from "./shell.js";

const main = document.getElementById("main");
let page = null;
let isFirst = true;

window.stemma = { shown: null };

const setTitle = (title) => { document.title = `${title} – Stemma`; };

const newPage = (route) => {
  const abort = new AbortController();
  const own = {
    main, route, signal: abort.signal,
    get: (path, parameters) => get(path, parameters, { signal: abort.signal }),
    use: (list) => {
      own.list = list;
      abort.signal.addEventListener("abort", () => list.close());
    },
    ready: (shown) => {
      if (page !== own) return;
      window.stemma.shown = shown;
      main.dataset.ready = "true";
    },
    setTitle,
    show: (...nodes) => { if (page === own) put(main, own.banner, ...nodes); },
    /** Says once per view that events are missing; a view that shows later brings the banner along. */
    warn: (sentence) => {
      if (own.banner) return;
      own.banner = bannerOf(sentence);
      if (main.hasChildNodes()) main.prepend(own.banner);
    },
    heading: (title, ...rest) => {
      setTitle(title);
      return el("header.head", el("h1", { tabindex: "-1" }, data(title)), ...rest);
    },
    fail: (error) => {
      if (page !== own || error.name === "AbortError" || error.status === 401) return;
      own.hasFailed = true;
      own.show(own.heading(views.find(({ name }) => name === route.view)?.label ?? "Not found"),
        el("div.problem", { role: "alert" }, el("p", error.message),
          button("Try again", () => start(true))));
      own.ready(null);
    },
    reload: () => start(true),
    close: () => abort.abort(),
  };
  return own;
};

const focusHeading = () => {
  const isElsewhere = !main.contains(document.activeElement);
  if (!isFirst && isElsewhere) main.querySelector("h1")?.focus({ preventScroll: true });
  isFirst = false;
};

const open = async (route) => {
  page?.close();
  page = newPage(route);
  const own = page;
  put(main);
  main.classList.remove("opened");
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
  if (!isNew && page && page.route.view === route.view && !page.hasFailed && page.update?.(route)) return;
  await open(route);
};

const countConflicts = () => get("/v1/conflicts/counts").then(showConflictCount).catch(() => {});

const restart = () => {
  get("/v1/node").then(showNode).catch(() => {});
  countConflicts();
  start(true);
};

takeToken();
buildRail();
whenDenied(() => {
  if (main.dataset.view === "token") return;
  page?.close();
  page = null;
  askForToken(main, hasToken(), restart);
});
whenMissing((sentence) => page?.warn(sentence));
window.addEventListener("hashchange", () => { takeToken(); start(false); });
window.addEventListener("stemma:changed", countConflicts);
listenToKeys(() => page);
restart();
