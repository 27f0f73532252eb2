// The form that changes fields of a record.
import { post } from "./api.js";
import { button, data, el, input, labelled, select } from "./dom.js";
import { isSame, keyText } from "./format.js";
import { notify } from "./notice.js";
import { author, rememberAuthor, takeBack } from "./person.js";

const isText = (type) => /^(String|ID|AWS(Date|Time|DateTime|Email|URL|Phone|IPAddress)|[A-Z]\w*)$/.test(type)
  && !/^(Int|Float|Boolean|AWSTimestamp|AWSJSON)/.test(type);

/** What a text of the form means for a field; a number too long for JavaScript stays a text, which the server reads. */
export const parseValue = (type, text) => {
  if (isText(type)) return text;
  if (/^(Int|AWSTimestamp)/.test(type) && /^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text))) return text;
  return JSON.parse(text);
};

export const editText = (value) => (value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

/** A control for a value of a type: its element, and its value, which is null where the box is checked. */
export const valueControl = (label, type, value) => {
  const text = editText(value);
  const control = type === "Boolean" ? select("value", ["true", "false"], text || "false")
    : /\n/.test(text) || text.length > 80
      ? el("textarea", { rows: 6, dir: "auto", spellcheck: "false" }, text)
      : input("value", text);
  const isNull = el("input", { type: "checkbox", checked: value === null, "aria-label": `${label}: null` });
  control.addEventListener("input", () => { isNull.checked = false; });
  const element = el("div", { class: "valuecontrol" }, labelled(data(label), control, { class: "field grow" }),
    el("label", { class: "check" }, isNull, " null"));
  return { element, control, read: () => (isNull.checked ? null : parseValue(type, control.value)) };
};

const changed = (record, controls) => Object.fromEntries(controls.flatMap(({ name, read }) => {
  let value;
  try {
    value = read();
  } catch {
    throw new Error(`${name}: not a value of its type.`);
  }
  return isSame(value, record.fields[name]) ? [] : [[name, value]];
}));

const save = async (state, fields, who, message) => {
  const line = JSON.stringify({ op: "update", model: state.model.name, key: state.present.key, fields });
  const answer = await post("/v1/mutations", { author: who, message }, `${line}\n`,
    { "If-Match": state.etag, "Content-Type": "application/x-ndjson" });
  window.dispatchEvent(new Event("stemma:changed"));
  notify(answer.commit ? `Saved as ${answer.commit}.` : "Nothing changed.",
    { action: answer.commit && takeBack([answer.commit], () => window.dispatchEvent(new Event("stemma:reload"))) });
};

/** Opens the form; `onDone` follows a change, and the wish to see what others have changed. */
export const editRecord = (state, onDone) => {
  const controls = state.model.fields.filter(({ isKey, name }) => !isKey && name in state.present.fields)
    .map(({ name, type }) => ({ name, ...valueControl(name, type, state.present.fields[name]) }));
  const who = input("author", author());
  const message = input("message", "");
  const problem = el("div", { role: "alert" });
  const say = (...nodes) => problem.replaceChildren(el("p", { class: "bad" }, nodes));
  const finish = () => { dialog.close(); onDone(); };
  const submit = async (event) => {
    event.preventDefault();
    try {
      const fields = changed(state.present, controls);
      if (Object.keys(fields).length === 0) { say("Nothing is changed."); return; }
      rememberAuthor(who.value.trim());
      await save(state, fields, who.value.trim(), message.value.trim());
      finish();
    } catch (error) {
      if (error.status === 412) say("The record has changed meanwhile. ", button("Reload it", finish));
      else say(error.message);
    }
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  };
  const form = el("form", { on: { submit, keydown: onKey } }, controls.map(({ element }) => element),
    el("div", { class: "line" }, labelled("Author", who), labelled("Message", message, { class: "field grow" })), problem,
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Save"),
      button("Cancel", () => dialog.close())));
  const dialog = el("dialog", { class: "edit", "aria-labelledby": "edit" },
    el("h2", { id: "edit" }, "Edit ", data(`${state.model.name} ${keyText(state.present.key)}`)), form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};
