// Two moments, or a peer and this node: which records differ.
import { get, models, pages } from "./api.js";
import { changeTable } from "./event.js";
import { button, data, el, input, labelled, select } from "./dom.js";
import { changeNode, keyForm, number, recordNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { go, link, query, recordLink } from "./route.js";

const signs = { added: "+", removed: "−", changed: "~" };
const kinds = Object.keys(signs);

const stateOf = (parameters) => Object.fromEntries(["from", "to", "peer", "model"].map((name) => [name, parameters.get(name) ?? ""]));

/** The remotes' names; without the right to read the status, they have to be typed. */
const peerNames = () => get("/v1/status").then(({ peers }) => peers.map(({ name }) => name)).catch(() => null);

const form = (page, state, schema, peers) => {
  const from = input("from", state.from, { placeholder: "yesterday, 2h, @17" });
  const to = input("to", state.to, { placeholder: "now" });
  const peer = peers ? select("peer", [["", "none"], ...new Set([...peers, state.peer].filter(Boolean))], state.peer)
    : input("peer", state.peer);
  const model = select("model", [["", "all"], ...schema.map(({ name }) => name)], state.model);
  const submit = (event) => {
    event?.preventDefault();
    const times = peer.value ? { peer: peer.value } : { from: from.value.trim(), to: to.value.trim() };
    go(link("compare", { ...times, model: model.value }));
  };
  const enable = () => [from, to].forEach((control) => { control.disabled = peer.value !== ""; });
  peer.addEventListener("change", enable);
  enable();
  model.addEventListener("change", () => { if (from.value || peer.value) submit(); });
  page.search = from;
  return el("form", { class: "filters", "aria-label": "Compare", on: { submit } },
    el("div", { class: "line" }, labelled("From", from), labelled("To", to), labelled("Or with peer", peer),
      labelled("Model", model), el("button", { type: "submit", class: "primary" }, "Compare")));
};

const short = (difference) => Object.entries(difference.fields).map(([name, { from, to }], index) => [
  index > 0 && "; ", data(name, "fieldname"), " ", changeNode(from, to)]);

const row = (difference, index, size, open) => el("div", listItem(index, size, keyForm(difference.key) ?? "",
  { "data-model": difference.model }),
button([el("span", { class: `sign ${difference.change}` }, signs[difference.change]),
  el("span", { class: "unseen" }, difference.change), recordNode(difference.model, difference.key),
  el("span", { class: "short" }, short(difference))], () => open(difference), { class: "row difference" }));

const details = (difference, close) => {
  const form_ = keyForm(difference.key);
  const name = recordNode(difference.model, difference.key);
  const changes = Object.entries(difference.fields).map(([field, { from, to }]) => ({ field, from, to }));
  return [
    el("header", { class: "panelhead" }, el("h2", {}, el("span", { class: `sign ${difference.change}` }, signs[difference.change]),
      ` ${difference.change}`), button("Close", close, { class: "quiet" })),
    el("p", {}, form_ === null ? name : el("a", { href: recordLink(difference.model, form_) }, name)),
    difference.kept && el("p", { class: "dim" }, "A deletion in conflict is taken back."),
    changeTable(changes),
  ].filter(Boolean);
};

const countText = (items, isDone) => kinds.map((kind) => el("span", { class: `sign ${kind}` },
  `${signs[kind]} ${number(items.filter(({ change }) => change === kind).length)} ${kind}`)).concat(
  isDone ? [] : [el("span", { class: "dim" }, "so far; scroll for more")]);

export const open = async (page, route) => {
  const state = stateOf(route.query);
  const [schema, peers] = await Promise.all([models(), peerNames()]);
  const counts = el("p", { class: "counts", role: "status" });
  const aside = el("aside", { class: "panel", "aria-label": "Difference" });
  const close = () => {
    const hadFocus = aside.contains(document.activeElement);
    aside.replaceChildren();
    page.main.classList.remove("opened");
    if (hadFocus) list.activate(list.active);
  };
  const show = (difference) => {
    aside.replaceChildren(...details(difference, close));
    page.main.classList.add("opened");
  };
  let isWhole = false;
  const list = longList({
    label: "Differences", empty: "No record differs.",
    make: (difference, index) => row(difference, index, isWhole ? list.items.length : -1, show),
    onPage: (items, isDone) => {
      isWhole = isDone;
      counts.replaceChildren(...countText(items, isDone));
      page.ready(items);
    },
  });
  page.show(page.heading("Compare", counts), form(page, state, schema, peers), el("div", { class: "split" }, list.element, aside));
  page.list = list;
  page.back = close;
  page.onClose = () => { list.close(); page.main.classList.remove("opened"); };
  if (!state.from && !state.peer) {
    list.status.textContent = "Enter a moment, or choose a peer.";
    page.ready([]);
    return;
  }
  const members = state.peer ? { peer: state.peer } : { from: state.from, to: state.to || "now" };
  await list.start(pages("/v1/diff", query({ ...members, model: state.model, limit: 500 }), page.signal)).catch((error) => {
    if (error.name !== "AbortError") page.ready(null);
  });
};
