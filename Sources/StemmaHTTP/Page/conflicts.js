// Open conflicts by record, or the merge of one record.
import { get, pages, post } from "./api.js";
import { button, data, el } from "./dom.js";
import { count, keyForm, kindText, number, recordNode, valueNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { confirm, notify } from "./notice.js";
import { author, takeBack } from "./person.js";
import { filterOf, grouped, remember } from "./queue.js";
import { conflictLink, link, replaced } from "./route.js";

const kinds = ["value", "delete", "cardinality", "dangling"];
const total = (row) => kinds.reduce((sum, kind) => sum + row[kind], 0);

const chip = (label, size, members, isOn) => el("li", {}, el("a", {
  href: link("conflicts", members), class: "chip", "aria-current": isOn ? "true" : undefined,
}, label, " ", el("span", { class: "dim" }, number(size))));

const chips = (counts, filter) => {
  const [model, kind] = [filter.get("model"), filter.get("kind")];
  const ofModel = counts.filter((row) => !model || row.model === model);
  const ofKind = (row) => (kind ? row[kind] : total(row));
  const sum = (rows, f) => rows.reduce((result, row) => result + f(row), 0);
  return el("nav", { "aria-label": "Filter conflicts", class: "chipbars" },
    el("ul", { class: "chips" }, chip("All models", sum(counts, ofKind), { kind }, !model),
      counts.map((row) => chip(data(row.model), ofKind(row), { model: row.model, kind }, row.model === model))),
    el("ul", { class: "chips" }, chip("All kinds", sum(ofModel, total), { model }, !kind),
      kinds.map((one) => chip(one, sum(ofModel, (row) => row[one]), { model, kind: one }, one === kind))));
};

const short = (conflict) => [
  conflict.kind === "delete" ? el("span", { class: "fieldname" }, "existence")
    : data(conflict.field ?? "whole record", "fieldname"), " ",
  conflict.kind === "delete" ? "deleted and changed"
    : conflict.kind === "dangling" ? ["no such record: ", valueNode(conflict.candidates[0]?.value)]
      : conflict.candidates.map(({ value }, index) => [index > 0 && el("span", { class: "slash" }, " | "), valueNode(value)])];

const row = (group, index, size, filter) => {
  const form = keyForm(group.key);
  const found = [...new Set(group.conflicts.map(({ kind }) => kind))];
  return el("div", listItem(index, size, form, { "data-model": group.model }),
    el("a", { class: "row two", href: conflictLink(group.model, form, filter) },
      el("span", { class: "short" }, recordNode(group.model, group.key), " ",
        found.map((kind) => el("span", { class: `kind ${kind}`, title: kindText(kind) }, kind))),
      el("span", { class: "short dim" }, group.conflicts.map((conflict, at) => [at > 0 && "; ", short(conflict)]))));
};

/** Resolves all value and delete conflicts of a model, or of all. */
const resolveAll = async (page, counts, model, take) => {
  const rows = counts.filter((one) => !model || one.model === model);
  const size = rows.reduce((sum, one) => sum + one.value + one.delete, 0);
  const what = `${count(size, "value and delete conflict")}${model ? ` of ${model}` : ""}`;
  const isSure = await confirm("Resolve all?", `This resolves ${what} with the ${take === "shown" ? "value that is shown" : "newest value"}.`,
    `Resolve ${number(size)}`);
  if (!isSure) return;
  try {
    const answer = await post("/v1/conflicts", { model, author: author() }, { take });
    window.dispatchEvent(new Event("stemma:changed"));
    notify(`Resolved ${count(answer.resolved, "conflict")}.`,
      { action: answer.commit && takeBack([answer.commit], () => window.dispatchEvent(new Event("stemma:reload"))) });
    page.reload();
  } catch (error) {
    notify(error.message, { isBad: true });
  }
};

const openList = async (page, route) => {
  const filter = filterOf(route.query);
  const model = filter.get("model");
  const counts = await get("/v1/conflicts/counts", {}, { signal: page.signal });
  const list = longList({
    label: "Conflicts", empty: "No open conflicts.", group: grouped,
    make: (group, index) => row(group, index, list.isWhole ? list.items.length : -1, filter),
    onPage: (groups, isDone) => {
      list.isWhole = isDone;
      list.redraw();
      remember(filter, groups);
      page.ready(groups.flatMap(({ conflicts }) => conflicts));
    },
  });
  list.element.classList.add("tall");
  const decidable = counts.some((one) => (!model || one.model === model) && one.value + one.delete > 0);
  page.show(page.heading("Conflicts", decidable && el("div", { class: "buttons" },
    ["shown", "newest"].map((take) => button(`Resolve all: ${take}`, () => resolveAll(page, counts, model, take))))),
  chips(counts, filter), list.element);
  page.list = list;
  page.onClose = () => list.close();
  await list.start(pages("/v1/conflicts", replaced(filter, { limit: 500 }), page.signal));
};

export const open = async (page, route) => {
  if (route.parts.length < 2) return openList(page, route);
  const merge = await import("./merge.js");
  return merge.open(page, route);
};
