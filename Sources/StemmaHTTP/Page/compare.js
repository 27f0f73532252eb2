// Two moments, or a peer and this node: which records differ.
import { models, pages } from "./api.js";
import { button, data, el, form, input, labelled, put, select, submitButton } from "./dom.js";
import { changeTable } from "./event.js";
import { changeNode, keyForm, number, recordAnchor, recordNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { sidePanel } from "./panel.js";
import { go, link, query } from "./route.js";

const signs = { added: "+", removed: "−", changed: "~" };
const signNode = (change, ...text) => el("span", { class: `sign ${change}` }, signs[change], text);

const peerNames = (page) => page.get("/v1/status")
  .then(({ peers }) => peers.map(({ name }) => name)).catch(() => null);

const compareForm = (page, state, schema, peers) => {
  const from = input("from", state.from, { placeholder: "yesterday, 2h, @17" });
  const to = input("to", state.to, { placeholder: "now" });
  const names = new Set([...peers ?? [], state.peer].filter(Boolean));
  const peer = peers ? select("peer", [["", "none"], ...names], state.peer)
    : input("peer", state.peer);
  const model = select("model", [["", "all"], ...schema.map(({ name }) => name)], state.model);
  const submit = () => {
    const sides = peer.value ? { peer: peer.value } : { from: from.value.trim(), to: to.value.trim() };
    go(link("compare", { ...sides, model: model.value }));
  };
  page.search = from;
  return form({ class: "line", "aria-label": "Compare" }, submit, labelled("From", from), labelled("To", to),
    labelled("Or with peer", peer), labelled("Model", model), submitButton("Compare"));
};

const fieldNode = ([name, { from, to }], index) =>
  [index > 0 && "; ", data(name, "fieldname"), " ", changeNode(from, to)];

const row = ({ change, model, key, fields }, index, size, open) => el("div",
  listItem(index, size, keyForm(key) ?? "", { "data-model": model }),
  button([signNode(change), el("span.unseen", change), recordNode(model, key),
    el("span.short", Object.entries(fields).map(fieldNode))], open, { class: "row difference" }));

const details = (difference) => [
  el("p", recordAnchor(difference)), difference.kept && el("p.dim", "A deletion in conflict is taken back."),
  changeTable(Object.entries(difference.fields).map(([field, { from, to }]) => ({ field, from, to }))),
];

const countNodes = (items, isWhole) => [Object.keys(signs).map((kind) =>
  signNode(kind, ` ${number(items.filter(({ change }) => change === kind).length)} ${kind}`)),
!isWhole && el("span.dim", "so far; scroll for more")];

export const open = async (page, route) => {
  const state = Object.fromEntries(["from", "to", "peer", "model"]
    .map((name) => [name, route.query.get(name) ?? ""]));
  const [schema, peers] = await Promise.all([models(), peerNames(page)]);
  const counts = el("p.counts", { role: "status" });
  const list = longList({
    page, label: "Differences", empty: "No record differs.",
    make: (difference, index) => row(difference, index, list.size, () =>
      panel.show([signNode(difference.change), ` ${difference.change}`], details(difference))),
    onPage: (items) => {
      put(counts, countNodes(items, list.isWhole));
      page.ready(items);
    },
  });
  const panel = sidePanel(page, "Difference", list, () => panel.clear());
  page.show(page.heading("Compare", counts), compareForm(page, state, schema, peers), panel.element);
  page.back = panel.clear;
  if (state.from || state.peer) {
    const sides = state.peer ? { peer: state.peer } : { from: state.from, to: state.to || "now" };
    await list.start(pages("/v1/diff", query({ ...sides, model: state.model, limit: 500 }), page.signal));
  } else {
    put(list.status, "Enter a moment, or choose a peer.");
    page.ready([]);
  }
};
