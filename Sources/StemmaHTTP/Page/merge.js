// The merge of one record: choose for each conflict, resolve, go on to the next record.
import { get, modelPath, models, post } from "./api.js";
import { button, data, el, input, labelled } from "./dom.js";
import { choiceOf, conflictNode } from "./candidate.js";
import { count, keyForm, keyOf, keyText, recordNode } from "./format.js";
import { announce, notify } from "./notice.js";
import { author, rememberAuthor, takeBack } from "./person.js";
import { filterOf, nextAfter } from "./queue.js";
import { conflictLink, go, link, recordLink } from "./route.js";

const load = async (page, route) => {
  const [model, form] = [decodeURIComponent(route.parts[0]), route.parts[1]];
  const options = { signal: page.signal };
  const [schema, conflicts, history] = await Promise.all([
    models(), get(modelPath("conflicts", model, form), {}, options),
    get(modelPath("history", model, form), {}, options).catch(() => []),
  ]);
  return { model, form, conflicts, schema, filter: filterOf(route.query), current: 0, editing: null,
    choices: conflicts.map(() => null), events: new Map(history.map((event) => [event.event, event])) };
};

const typeOf = (state, field) => {
  const model = state.schema.find(({ name }) => name === state.model);
  return model?.fields.find(({ name }) => name === field)?.type ?? "String";
};

const targetOf = (state, field) => {
  const model = state.schema.find(({ name }) => name === state.model);
  const target = model?.relationships.find(({ name }) => name === field)?.target;
  return state.schema.find(({ name }) => name === target);
};

const origins = (state) => [...new Set(state.conflicts.filter(({ kind }) => kind !== "dangling")
  .flatMap(({ candidates }) => candidates.map(({ origin }) => origin)))];

const postOne = (state, conflict, choice, who, message) => post(modelPath("conflicts", state.model, state.form),
  { field: conflict.field, kind: conflict.kind, author: who, message }, choice.body);

/** Resolves what is chosen, one after the other; what was done stays done if a later one fails. */
const resolveChosen = async (state, who, message) => {
  const commits = [];
  let problem = null;
  for (const [index, choice] of state.choices.entries()) {
    if (!choice) continue;
    try {
      const { commit } = await postOne(state, state.conflicts[index], choice, who, message);
      commits.push(commit);
    } catch (error) {
      problem = error;
      break;
    }
  }
  return { commits: [...new Set(commits.filter(Boolean))], done: commits.length, problem };
};

const toNext = async (state, isDone) => {
  const next = await nextAfter(state.filter, `${state.model}/${state.form}`, isDone);
  go(next ? conflictLink(next.model, keyForm(next.key), state.filter) : link("conflicts", state.filter));
};

const afterResolve = async (page, state, result) => {
  window.dispatchEvent(new Event("stemma:changed"));
  const here = conflictLink(state.model, state.form, state.filter);
  const back = () => { if (location.hash === here) page.reload(); else go(here); };
  if (result.problem) {
    notify(`${result.done > 0 ? `Resolved ${result.done}, then: ` : ""}${result.problem.message}`, { isBad: true });
    if (result.done > 0) page.reload();
    return;
  }
  notify(`Resolved ${count(result.done, "conflict")} of ${state.model} ${keyText(state.conflicts[0].key)}.`,
    { action: takeBack(result.commits, back) });
  if (result.done === state.conflicts.length) await toNext(state, true);
  else page.reload();
};

const sideBar = (state, chooseSide) => el("div", { class: "buttons sides" }, el("span", { class: "dim" }, "For all fields:"),
  origins(state).map((origin) => button(["from ", data(origin)], () => chooseSide(origin))),
  button("what is shown", () => chooseSide(null)));

const missing = (page, state) => {
  page.show(page.heading("No open conflict"), el("div", { class: "page" },
    el("p", {}, recordNode(state.model, keyOf(state.form)),
      " has no open conflict."),
    el("p", { class: "buttons" }, el("a", { class: "button", href: link("conflicts", state.filter) }, "All conflicts"),
      el("a", { class: "button", href: recordLink(state.model, state.form) }, "The record"))));
  page.back = () => go(link("conflicts", state.filter));
  page.ready([]);
};

const bar = (resolve, skip) => {
  const [who, message] = [input("author", author()), input("message", "")];
  const submit = el("button", { type: "submit", class: "primary" });
  const onSubmit = (event) => {
    event.preventDefault();
    rememberAuthor(who.value.trim());
    resolve(who.value.trim(), message.value.trim());
  };
  const form = el("form", { class: "mergebar", on: { submit: onSubmit } }, labelled("Author", who),
    labelled("Message", message, { class: "field grow" }), submit, button("Skip", skip, { title: "Go to the next record" }));
  return { form, show: (chosen, all) => {
    submit.textContent = `Resolve ${chosen} of ${all}`;
    submit.disabled = chosen === 0;
  } };
};

export const open = async (page, route) => {
  const state = await load(page, route);
  if (state.conflicts.length === 0) return missing(page, state);
  const place = el("div", { class: "conflictplace" });
  let isBusy = false;

  const draw = () => {
    place.replaceChildren(...state.conflicts.map((conflict, index) => conflictNode(conflict, index, {
      chosen: state.choices[index], isCurrent: index === state.current, isEditing: index === state.editing, events: state.events,
      type: typeOf(state, conflict.field), target: conflict.kind === "dangling" ? targetOf(state, conflict.field) : null,
    }, { choose: (choice) => choose(index, choice), edit: () => edit(index), clear: () => choose(index, null) })));
    foot.show(state.choices.filter(Boolean).length, state.conflicts.length);
  };
  const focus = (index) => {
    state.current = Math.max(0, Math.min(index, state.conflicts.length - 1));
    draw();
    const section = place.children[state.current];
    section.querySelector("h2").focus({ preventScroll: true });
    section.scrollIntoView({ block: "nearest" });
  };
  const choose = (index, choice) => {
    state.choices[index] = choice;
    state.editing = null;
    announce(choice ? `Chosen: ${choice.label}` : "Left open");
    const open_ = state.choices.findIndex((one, at) => !one && at > index);
    focus(choice && open_ >= 0 ? open_ : index);
  };
  const edit = (index) => {
    [state.current, state.editing] = [index, index];
    draw();
    place.children[index].querySelector(".own input, .own textarea, .own select")?.focus();
  };
  const chooseSide = (origin) => {
    state.choices = state.conflicts.map((conflict, index) => {
      const candidate = origin === null ? conflict.candidates[0] : conflict.candidates.find((one) => one.origin === origin);
      return candidate ? choiceOf(conflict, candidate) ?? state.choices[index] : state.choices[index];
    });
    focus(state.current);
  };
  const resolve = async (who, message) => {
    if (isBusy || !state.choices.some(Boolean)) return;
    isBusy = true;
    await afterResolve(page, state, await resolveChosen(state, who, message)).catch(page.fail);
    isBusy = false;
  };
  const foot = bar(resolve, () => toNext(state, false).catch(page.fail));
  const pick = (n) => {
    const conflict = state.conflicts[state.current];
    const candidate = conflict.candidates.find((one) => one.n === n);
    const choice = candidate && choiceOf(conflict, candidate);
    if (choice) choose(state.current, choice);
  };

  page.show(page.heading(`${state.model} ${keyText(state.conflicts[0].key)}`, el("div", { class: "buttons" },
    el("a", { class: "button", href: recordLink(state.model, state.form) }, "Record and history"),
    el("a", { class: "button", href: link("conflicts", state.filter) }, "All conflicts"))),
  sideBar(state, chooseSide), place, foot.form);
  page.keys = { j: () => focus(state.current + 1), k: () => focus(state.current - 1),
    ArrowDown: () => focus(state.current + 1), ArrowUp: () => focus(state.current - 1),
    e: () => edit(state.current), Enter: () => foot.form.requestSubmit(),
    ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [n, () => pick(n)])) };
  page.submit = () => foot.form.requestSubmit();
  page.back = () => go(link("conflicts", state.filter));
  draw();
  page.ready(state.conflicts);
};
