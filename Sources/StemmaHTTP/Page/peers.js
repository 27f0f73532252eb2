// How this node stands with each of its remotes.
import { get } from "./api.js";
import { data, el, facts, scroller } from "./dom.js";
import { ago, count, number } from "./format.js";
import { link } from "./route.js";

const lag = (peer) => (peer.behind === null || peer.ahead === null ? "unknown"
  : peer.behind === 0 && peer.ahead === 0 ? "equal"
    : `this node is ${count(peer.behind, "event")} behind, ${number(peer.ahead)} ahead`);

const exchangeText = (exchange) => [
  ago(exchange.time), ", ", el("span", { class: "time" }, exchange.time), ": ",
  exchange.pulled === null ? "" : `${number(exchange.pulled)} pulled`, exchange.pushed === null ? "" : `, ${number(exchange.pushed)} pushed`,
];

const partitionTable = (peer) => {
  const rows = Object.entries(peer.partitions);
  if (rows.length === 0) return null;
  return scroller(`Partitions of ${peer.name}`, el("table", {},
    el("thead", {}, el("tr", {}, ["Partition", "Behind", "Ahead"].map((name, index) =>
      el("th", { scope: "col", class: index > 0 ? "number" : undefined }, name)))),
    el("tbody", {}, rows.map(([partition, { behind, ahead }]) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: link("events", { partition }) }, data(partition))),
      el("td", { class: "number" }, number(behind)), el("td", { class: "number" }, number(ahead)))))));
};

const card = (peer) => {
  const last = peer.lastExchange;
  return el("section", { class: "card wide", "data-row": peer.name },
    el("h2", {}, data(peer.name)),
    peer.problem && el("p", { class: "bad" }, "Problem: ", data(peer.problem)),
    last?.problem && el("p", { class: "bad" }, "Last exchange: ", data(last.problem)),
    facts([
      ["Address", data(peer.address, "mono")],
      ["Scope", peer.scope ? data(peer.scope.join(" ")) : "unknown"],
      ["Lag", lag(peer)],
      ["Last exchange", last ? exchangeText(last) : "never"],
      ["Last success", last?.lastSuccess ? `${ago(last.lastSuccess)}, ${last.lastSuccess}` : "never"],
    ]),
    partitionTable(peer),
    el("p", {}, el("a", { href: link("compare", { peer: peer.name }) }, "Compare records")));
};

export const open = async (page) => {
  const { peers } = await get("/v1/status", {}, { signal: page.signal });
  page.show(page.heading("Peers"), el("div", { class: "page" },
    peers.length === 0 ? el("p", { class: "liststatus" }, "This node has no remotes; `stemma remote add` names one.")
      : el("div", { class: "cards" }, peers.map(card))));
  page.ready(peers);
};
