// Open conflicts by record, or the merge of one record.
import { pages, post } from "./api.js";
import { author } from "./author.js";
import { changed, takeBack } from "./changes.js";
import { button, data, el } from "./dom.js";
import { count, keyForm, kinds, kindText, number, recordNode, valueNode } from "./format.js";
import { listItem, longList } from "./list.js";
import { confirm, notify } from "./notice.js";
import { filterOf, grouped, remember } from "./queue.js";
import { conflictLink, link, replaced } from "./route.js";

const total = (row) => kinds.reduce((sum, kind) => sum + row[kind], 0);

const chip = (label, size, members, isOn) => el("li", el("a", {
  href: link("conflicts", members), class: "chip", "aria-current": isOn && "true",
}, label, " ", el("span.dim", number(size))));

const chips = (counts, filter) => {
  const [model, kind] = [filter.get("model"), filter.get("kind")];
  const ofModel = counts.filter((row) => !model || row.model === model);
  const ofKind = (row) => (kind ? row[kind] : total(row));
  const sum = (rows, f) => rows.reduce((result, row) => result + f(row), 0);
  return el("nav", { "aria-label": "Filter conflicts", class: "chipbars" },
    el("ul.chips", chip("All models", sum(counts, ofKind), { kind }, !model),
      counts.map((row) =>
        chip(data(row.model), ofKind(row), { model: row.model, kind }, row.model === model))),
    el("ul.chips", chip("All kinds", sum(ofModel, total), { model }, !kind),
      kinds.map((one) => chip(one, sum(ofModel, (row) => row[one]), { model, kind: one }, one === kind))));
};

const short = ({ kind, field, candidates }) => (kind === "delete" ? "deleted and changed"
  : [data(field ?? "whole record", "fieldname"), " ", kind === "dangling" && "no such record: ",
    candidates.map(({ value }, index) => [index > 0 && " | ", valueNode(value)])]);

const row = (group, index, size, filter) => {
  const form = keyForm(group.key);
  const found = [...new Set(group.conflicts.map(({ kind }) => kind))];
  return el("div", listItem(index, size, form, { "data-model": group.model }),
    el("a.row.two", { href: conflictLink(group.model, form, filter) },
      el("span.short", recordNode(group.model, group.key), " ",
        found.map((kind) => el("span.kind", { title: kindText(kind) }, kind))),
      el("span.short.dim", group.conflicts.map((conflict, at) => [at > 0 && "; ", short(conflict)]))));
};

const resolveAll = async (page, counts, model, take) => {
  const rows = counts.filter((one) => !model || one.model === model);
  const size = rows.reduce((sum, one) => sum + one.value + one.delete, 0);
  const what = `${count(size, "value and delete conflict")}${model ? ` of ${model}` : ""}`;
  const value = take === "shown" ? "value that is shown" : "newest value";
  const isSure = await confirm("Resolve all?", `This resolves ${what} with the ${value}.`,
    `Resolve ${number(size)}`);
  if (!isSure) return;
  try {
    const answer = await post("/v1/conflicts", { model, author: author() }, { take });
    changed();
    notify(`Resolved ${count(answer.resolved, "conflict")}.`,
      { action: answer.commit && takeBack([answer.commit], page.reload) });
    page.reload();
  } catch (error) {
    notify(error.message, { isBad: true });
  }
};

const openList = async (page, route) => {
  const filter = filterOf(route.query);
  const model = filter.get("model");
  const counts = await page.get("/v1/conflicts/counts");
  const list = longList({
    page, label: "Conflicts", empty: "No open conflicts.", group: grouped,
    make: (group, index) => row(group, index, list.size, filter),
    onPage: (groups) => {
      list.redraw();
      remember(filter, groups);
      page.ready(groups.flatMap(({ conflicts }) => conflicts));
    },
  });
  list.element.classList.add("tall");
  const decidable = counts.some((one) => (!model || one.model === model) && one.value + one.delete > 0);
  const resolveButton = (take) =>
    button(`Resolve all: ${take}`, () => resolveAll(page, counts, model, take));
  page.show(
    page.heading("Conflicts", decidable && el("div.buttons.writing", ["shown", "newest"].map(resolveButton))),
    chips(counts, filter), list.element,
  );
  await list.start(pages("/v1/conflicts", replaced(filter, { limit: 500 }), page.signal));
};

export const open = async (page, route) => {
  if (!route.form) return openList(page, route);
  const merge = await import("./merge.js");
  return merge.open(page, route);
};
