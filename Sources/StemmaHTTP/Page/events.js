// The log, newest first, and one of its events beside it.
import { models, pages } from "./api.js";
import { button, data, el } from "./dom.js";
import { showEvent } from "./event.js";
import { filterForm, filterOf } from "./filters.js";
import { count, recordNode, timeNode, valueNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { announce } from "./notice.js";
import { eventLink, go, link, replaced } from "./route.js";
import { follow } from "./stream.js";

const pageSize = 200;
const identity = (event) => `@${event.position}`;

const fieldsText = (event) => Object.entries(event.fields).map(([name, value], index) => [
  index > 0 && ", ", data(name, "fieldname"), " ", valueNode(value)]);

const who = (event) => {
  const origin = event.event.slice(0, event.event.lastIndexOf(":"));
  return el("span", { class: "who" }, event.author && [data(event.author), el("span", { class: "slash" }, " at ")], data(origin));
};

const row = (event, index, size, hrefOf, opened) => el("div", listItem(index, size, identity(event)),
  el("a", { class: "row event", href: hrefOf(event), "aria-current": opened === identity(event) ? "true" : undefined },
    el("span", { class: "position" }, identity(event)), timeNode(event.time), who(event),
    el("span", { class: `op ${event.op}` }, event.op), recordNode(event.model, event.key),
    el("span", { class: "short" }, fieldsText(event))));

/** The state of the view: what the address says, and what the stream has brought since. */
const makeState = (page, schema) => {
  const state = { filter: filterOf(page.route.query), isLive: page.route.query.get("live") !== "off", opened: null, fresh: [] };
  state.parameters = () => replaced(state.filter, { live: state.isLive ? null : "off" });
  state.hrefOf = (event) => eventLink(identity(event), state.parameters());
  state.schema = schema;
  return state;
};

const follows = (page, state, list, button_) => {
  let abort = null;
  let said = 0;
  const take = () => {
    list.prepend(state.fresh);
    state.fresh = [];
    button_.hidden = true;
    page.ready(list.items);
  };
  const onEvent = (event) => {
    const newest = state.fresh[0] ?? list.items[0];
    if (newest && Number(event.position) <= Number(newest.position)) return;
    state.fresh = [event, ...state.fresh];
    said += 1;
    announce(`${count(said, "new event")}`);
    setTimeout(() => { said = 0; }, 3000);
    if (list.isAtTop()) take();
    else {
      button_.textContent = count(state.fresh.length, "new event");
      button_.hidden = false;
    }
  };
  return {
    take,
    stop: () => abort?.abort(),
    start: (onState) => {
      abort = new AbortController();
      page.signal.addEventListener("abort", () => abort.abort());
      const newest = state.fresh[0] ?? list.items[0];
      follow("/v1/events", state.filter, newest ? identity(newest) : "@0", abort.signal, onEvent, onState);
    },
  };
};

const liveSwitch = (state, onChange) => {
  const control = button([el("span", { class: "dot", "aria-hidden": "true" }), "Live"], () => {
    state.isLive = !state.isLive;
    control.setAttribute("aria-pressed", String(state.isLive));
    onChange();
  }, { class: "live", "aria-pressed": String(state.isLive), title: "New events appear by themselves" });
  return control;
};

const panel = (page, state, list, aside) => {
  const show = async (route) => {
    const name = route.parts[0] ? decodeURIComponent(route.parts[0]) : null;
    state.opened = name;
    page.main.classList.toggle("opened", name !== null);
    list.redraw();
    if (name === null) {
      aside.replaceChildren();
      page.setTitle("Events");
      page.ready(list.items);
      return;
    }
    page.setTitle(`Event ${name}`);
    await showEvent(page, aside, name, route.query.get("partition"), close);
  };
  const close = () => { if (state.opened) go(link("events", state.parameters())); };
  return { show, close };
};

export const open = async (page, route) => {
  const state = makeState(page, await models());
  const newer = button("", () => { follower.take(); list.toTop(); }, { class: "newer", hidden: true });
  const aside = el("aside", { class: "panel", "aria-label": "Event" });
  const list = longList({
    label: "Events",
    make: (event, index) => row(event, index, list.source.isDone ? list.items.length : -1, state.hrefOf, state.opened),
    empty: "No event passes the filter.",
    onScroll: () => { if (list.isAtTop() && state.fresh.length > 0) follower.take(); },
  });
  const follower = follows(page, state, list, newer);
  const beside = panel(page, state, list, aside);
  const onState = (isConnected) => live.classList.toggle("waiting", !isConnected);
  const live = liveSwitch(state, () => {
    if (state.isLive) follower.start(onState);
    else follower.stop();
    go(link(page.route.parts[0] ? `events/${page.route.parts[0]}` : "events", state.parameters()));
  });
  const { form, search } = filterForm(state.filter, state.schema, live, (filter) => {
    state.filter = filter;
    go(link("events", state.parameters()));
  });

  page.show(page.heading("Events", newer), form, el("div", { class: "split" }, list.element, aside));
  page.search = search;
  page.list = list;
  page.back = beside.close;
  page.onClose = () => { list.close(); page.main.classList.remove("opened"); };
  page.update = (next) => {
    if (String(filterOf(next.query)) !== String(filterOf(page.route.query))) return false;
    page.route = next;
    beside.show(next).catch(page.fail);
    return true;
  };
  list.source = pages("/v1/events", replaced(state.filter, { limit: pageSize }), page.signal);
  await list.start(list.source);
  page.ready(list.items);
  if (state.isLive) follower.start(onState);
  if (route.parts[0]) await beside.show(route);
};
