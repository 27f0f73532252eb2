// The log, newest first, and one of its events beside it.
import { models, pages } from "./api.js";
import { button, data, el } from "./dom.js";
import { loadEvent } from "./event.js";
import { filterForm, filterOf } from "./filters.js";
import { count, opNode, recordNode, timeNode, valueNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { announce } from "./notice.js";
import { sidePanel } from "./panel.js";
import { eventLink, go, link, replaced } from "./route.js";
import { follow } from "./stream.js";

const identity = (event) => `@${event.position}`;
const nodeOf = ({ event }) => event.slice(0, event.lastIndexOf(":"));

const row = (event, index, size, href, isOpened) => el("div", listItem(index, size, identity(event)),
  el("a.row.event", { href, "aria-current": isOpened && "true" },
    el("span.position", identity(event)), timeNode(event.time),
    el("span.who", event.author && [data(event.author), el("span.dim", " at ")], data(nodeOf(event))),
    opNode(event), recordNode(event.model, event.key),
    el("span.short", Object.entries(event.fields).map(([name, value], at) =>
      [at > 0 && ", ", data(name, "fieldname"), " ", valueNode(value)]))));

/** Takes what the stream brings into the list at its top, or keeps it until one goes there. */
const follower = (page, state, list, newer, onState) => {
  let fresh = [];
  let said = 0;
  let abort = null;
  const newest = () => fresh[0] ?? list.items[0];
  const take = () => {
    list.prepend(fresh);
    fresh = [];
    newer.hidden = true;
    if (!state.opened) page.ready(list.items);
  };
  const onEvent = (event) => {
    if (newest() && Number(event.position) <= Number(newest().position)) return;
    fresh = [event, ...fresh];
    said += 1;
    announce(count(said, "new event"));
    setTimeout(() => { said = 0; }, 3000);
    newer.hidden = false;
    newer.textContent = count(fresh.length, "new event");
    if (list.isAtTop()) take();
  };
  page.signal.addEventListener("abort", () => abort?.abort());
  return {
    take: () => { if (fresh.length > 0) take(); },
    stop: () => abort?.abort(),
    start: () => {
      abort = new AbortController();
      const last = newest() ? identity(newest()) : "@0";
      follow("/v1/events", state.filter, last, abort.signal, onEvent, onState);
    },
  };
};

export const open = async (page, route) => {
  const schema = await models();
  const isLive = route.query.get("live") !== "off";
  const state = { filter: filterOf(route.query), isLive, opened: route.name };
  const parameters = () => replaced(state.filter, { live: state.isLive ? null : "off" });
  const toList = () => go(link("events", parameters()));
  const newer = button("", () => list.toTop(), { class: "newer", hidden: true });
  const broken = el("span", { hidden: true }, ", not connected");
  const live = button([el("span.dot", { "aria-hidden": "true" }), el("span", "Live", broken)], () => {
    state.isLive = !state.isLive;
    live.setAttribute("aria-pressed", String(state.isLive));
    showConnection(true);
    if (state.isLive) stream.start();
    else stream.stop();
    go(state.opened ? eventLink(state.opened, parameters()) : link("events", parameters()));
  }, { class: "live", "aria-pressed": String(state.isLive), title: "New events appear by themselves" });
  const list = longList({
    page, label: "Events", empty: "No event passes the filter.",
    make: (event, index) => row(event, index, list.size,
      eventLink(identity(event), parameters()), state.opened === identity(event)),
    onPage: (items) => { if (!state.opened) page.ready(items); },
    onScroll: () => { if (list.isAtTop()) stream.take(); },
  });
  const panel = sidePanel(page, "Event", list, toList);
  const showConnection = (isConnected) => {
    if (broken.hidden !== isConnected) announce(isConnected ? "Connected again" : "Not connected");
    broken.hidden = isConnected;
    live.classList.toggle("waiting", !isConnected);
  };
  const stream = follower(page, state, list, newer, showConnection);
  const showEvent = ({ name, query }) => {
    state.opened = name;
    list.redraw();
    page.setTitle(name === null ? "Events" : `Event ${name}`);
    if (name !== null) return loadEvent(page, panel, name, query.get("partition"));
    panel.clear();
    return page.ready(list.items);
  };
  const filters = filterForm(state.filter, schema, live, (filter) => {
    state.filter = filter;
    toList();
  });

  page.show(page.heading("Events", newer), filters.element, panel.element);
  page.search = filters.search;
  page.back = () => { if (state.opened) toList(); };
  page.update = (next) => {
    if (String(filterOf(next.query)) !== String(filterOf(route.query))) return false;
    showEvent(next);
    return true;
  };
  await list.start(pages("/v1/events", replaced(state.filter, { limit: 200 }), page.signal));
  if (state.isLive) stream.start();
  if (route.name !== null) await showEvent(route);
};
