// The merge of one record: choose for each conflict, resolve, go on to the next record.
import { modelPath, models, post, read } from "./api.js";
import { author, rememberAuthor } from "./author.js";
import { choiceOf, conflictNode } from "./candidate.js";
import { changed, takeBack } from "./changes.js";
import { button, data, el, form, input, labelled, put, submitButton } from "./dom.js";
import { count, keyForm, keyOf, keyText, recordNode } from "./format.js";
import { announce, notify } from "./notice.js";
import { filterOf, nextAfter } from "./queue.js";
import { conflictLink, go, link, recordLink } from "./route.js";

const load = async (page, { name, form, query }) => {
  const [schema, { data: conflicts, etag }, history] = await Promise.all([
    models(),
    read(modelPath("conflicts", name, form), {}, { signal: page.signal }),
    page.get(modelPath("history", name, form)).catch(() => []),
  ]);
  return {
    name, form, conflicts, schema, etag,
    model: schema.find((one) => one.name === name),
    events: new Map(history.map((event) => [event.event, event])),
    filter: filterOf(query),
    current: 0, editing: null, choices: conflicts.map(() => null),
  };
};

const viewOf = ({ model, schema, choices, current, editing, events }, { field }, index) => {
  const target = model?.relationships.find(({ name }) => name === field)?.target;
  return { chosen: choices[index], isCurrent: index === current, isEditing: index === editing, events,
    type: model?.fields.find(({ name }) => name === field)?.type ?? "String",
    target: schema.find(({ name }) => name === target) };
};

/** All choices in one commit, if the conflicts are still those that were shown. */
const resolveChosen = async ({ name, form, conflicts, choices, etag }, who, message) => {
  const chosen = conflicts.flatMap(({ field, kind }, index) =>
    (choices[index] ? [[field, kind, choices[index]]] : []));
  // A value of one's own is JSON already; it must not pass through a JavaScript number.
  const lines = chosen.map(([field, kind, { body, json }]) => {
    const head = JSON.stringify({ ...(field !== null && { field }), kind, ...body });
    return json === undefined ? head : `${head.slice(0, -1)},"set":${json}}`;
  });
  const parameters = { author: who, message };
  const path = modelPath("conflicts", name, form);
  const answer = await post(path, parameters, `[${lines.join(",")}]`, { "If-Match": etag });
  return { commit: answer.commit, count: chosen.length };
};

const toNext = async (state, isDone) => {
  const next = await nextAfter(state.filter, `${state.name}/${state.form}`, isDone);
  go(next ? conflictLink(next.model, keyForm(next.key), state.filter) : link("conflicts", state.filter));
};

const afterResolve = async (page, state, { commit, count: resolved }) => {
  changed();
  const toRecord = () => go(recordLink(state.name, state.form));
  const record = `${state.name} ${keyText(state.conflicts[0].key)}`;
  notify(`Resolved ${count(resolved, "conflict")} of ${record}.`, { action: takeBack([commit], toRecord) });
  if (resolved === state.conflicts.length) await toNext(state, true);
  else page.reload();
};

/** Shows why nothing was resolved. The conflicts may be others by now. */
const afterFailure = (page, error) => {
  const isStale = error.status === 412 || error.status === 404;
  const stale = "The conflicts of the record have changed meanwhile. Nothing was resolved; choose again.";
  notify(isStale ? stale : error.message, { isBad: true });
  if (isStale) page.reload();
};

const sideBar = ({ conflicts }, chooseSide) => {
  const sides = conflicts.filter(({ kind }) => kind !== "dangling").flatMap(({ candidates }) => candidates);
  const origins = [...new Set(sides.map(({ origin }) => origin))];
  return origins.length > 0 && el("div.buttons", el("span.dim", "For all fields:"),
    origins.map((origin) => button(["from ", data(origin)], () => chooseSide(origin))),
    button("what is shown", () => chooseSide(null)));
};

const links = ({ name, form: key, filter }) => el("div.buttons",
  el("a.button", { href: recordLink(name, key) }, "Record and history"),
  el("a.button", { href: link("conflicts", filter) }, "All conflicts"));

const resolveBar = (resolve, skip) => {
  const [who, message] = [input("author", author()), input("message", "")];
  const button_ = submitButton("Resolve");
  const submit = () => {
    rememberAuthor(who.value.trim());
    resolve(who.value.trim(), message.value.trim());
  };
  return {
    element: form({ class: "line mergebar writing" }, submit, labelled("Author", who),
      labelled("Message", message, { class: "field grow" }), button_, button("Skip", skip)),
    show: (chosen, all) => {
      button_.textContent = `Resolve ${chosen} of ${all}`;
      button_.disabled = chosen === 0;
    },
  };
};

export const open = async (page, route) => {
  const state = await load(page, route);
  const { conflicts } = state;
  page.back = () => go(link("conflicts", state.filter));
  if (conflicts.length === 0) {
    page.show(page.heading("No open conflict", links(state)),
      el("p", recordNode(state.name, keyOf(state.form)), " has no open conflict."));
    page.ready([]);
    return;
  }
  const place = el("div.conflictplace");
  let isBusy = false;

  const draw = () => {
    put(place, conflicts.map((conflict, index) => {
      const act = { choose: (choice) => choose(index, choice), edit: () => edit(index) };
      return conflictNode(conflict, index, viewOf(state, conflict, index), act);
    }));
    bar.show(state.choices.filter(Boolean).length, conflicts.length);
  };
  const focus = (index) => {
    state.current = Math.max(0, Math.min(index, conflicts.length - 1));
    draw();
    const section = place.children[state.current];
    section.querySelector("h2").focus({ preventScroll: true });
    section.scrollIntoView({ block: "nearest" });
  };
  const choose = (index, choice) => {
    state.choices[index] = choice;
    state.editing = null;
    announce(choice ? `Chosen: ${choice.label}` : "Left open");
    const next = state.choices.findIndex((one, at) => !one && at > index);
    focus(choice && next >= 0 ? next : index);
  };
  const pick = (n) => {
    const conflict = conflicts[state.current];
    const candidate = conflict.candidates.find((one) => one.n === n);
    const choice = candidate && choiceOf(conflict, candidate);
    if (choice) choose(state.current, choice);
  };
  const chooseSide = (origin) => {
    conflicts.forEach((conflict, index) => {
      const candidate = conflict.candidates.find((one) => origin === null || one.origin === origin);
      state.choices[index] = (candidate && choiceOf(conflict, candidate)) ?? state.choices[index];
    });
    focus(state.current);
  };
  const edit = (index) => {
    [state.current, state.editing] = [index, index];
    draw();
    place.children[index].querySelector(".own input, .own textarea, .own select")?.focus();
  };
  const resolve = async (who, message) => {
    if (isBusy || !state.choices.some(Boolean)) return;
    isBusy = true;
    try {
      await afterResolve(page, state, await resolveChosen(state, who, message));
    } catch (error) {
      afterFailure(page, error);
    }
    isBusy = false;
  };
  const bar = resolveBar(resolve, () => toNext(state, false).catch(page.fail));
  const [older, newer] = [() => focus(state.current - 1), () => focus(state.current + 1)];

  page.show(page.heading(`${state.name} ${keyText(conflicts[0].key)}`, links(state)),
    sideBar(state, chooseSide), place, bar.element);
  page.submit = () => bar.element.requestSubmit();
  page.keys = {
    j: newer, k: older, ArrowDown: newer, ArrowUp: older, e: () => edit(state.current), Enter: page.submit,
    ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [n, () => pick(n)])),
  };
  draw();
  page.ready(conflicts);
};
