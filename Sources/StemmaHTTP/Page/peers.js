// How this node stands with each of its remotes.
import { data, el, facts, table } from "./dom.js";
import { ago, number } from "./format.js";
import { link } from "./route.js";

export const lagText = ({ behind, ahead }) => (behind === null || ahead === null ? "unknown"
  : behind + ahead === 0 ? "equal" : `${number(behind)} behind, ${number(ahead)} ahead`);

const exchangeText = ({ time, pulled, pushed }) =>
  `${ago(time)}, ${time}: ${number(pulled)} pulled, ${number(pushed)} pushed`;

const partitionTable = ({ name, partitions }) => {
  const rows = Object.entries(partitions).map(([partition, { behind, ahead }]) =>
    [el("a", { href: link("events", { partition }) }, data(partition)), number(behind), number(ahead)]);
  return rows.length > 0 && table(`Partitions of ${name}`, ["Partition", "#Behind", "#Ahead"], rows);
};

const card = (peer) => {
  const last = peer.lastExchange;
  return el("section.card.wide", { "data-row": peer.name }, el("h2", data(peer.name)),
    peer.problem && el("p.bad", "Problem: ", data(peer.problem)),
    last?.problem && el("p.bad", "Last exchange: ", data(last.problem)),
    facts([
      ["Address", data(peer.address, "mono")],
      ["Scope", peer.scope ? data(peer.scope.join(" ")) : "unknown"],
      ["Lag", lagText(peer)],
      ["Last exchange", last ? exchangeText(last) : "never"],
      ["Last success", last?.lastSuccess ?? "never"],
    ]),
    partitionTable(peer), el("a", { href: link("compare", { peer: peer.name }) }, "Compare records"));
};

export const open = async (page) => {
  const { peers } = await page.get("/v1/status");
  page.show(page.heading("Peers"), peers.length > 0 ? el("div.cards", peers.map(card))
    : el("p.status", "This node has no remotes; `stemma remote add` names one."));
  page.ready(peers);
};
