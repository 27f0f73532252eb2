// The form that changes fields of a record.
import { post } from "./api.js";
import { button, data, el, form, input, labelled, openDialog, put, select, submitButton } from "./dom.js";
import { isSame, keyText } from "./format.js";
import { notify } from "./notice.js";
import { author, changed, rememberAuthor, takeBack } from "./person.js";

const isText = (type) => !/^(\[|Int|Float|Boolean|AWSTimestamp|AWSJSON)/.test(type);

const parseValue = (type, text) => {
  if (isText(type)) return text;
  // Larger integers would lose digits as numbers; the server takes them as texts.
  const isInteger = /^(Int|AWSTimestamp)/.test(type) && /^-?\d+$/.test(text);
  if (isInteger && !Number.isSafeInteger(Number(text))) return text;
  return JSON.parse(text);
};

export const valueControl = (label, type, value) => {
  const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value);
  const control = type === "Boolean" ? select("value", ["true", "false"], text || "false")
    : /\n/.test(text) || text.length > 80
      ? el("textarea", { rows: 6, dir: "auto", spellcheck: "false" }, text)
      : input("value", text);
  const isNull = el("input", { type: "checkbox", checked: value === null, "aria-label": `${label}: null` });
  control.addEventListener("input", () => { isNull.checked = false; });
  const element = el("div.valuecontrol", labelled(data(label), control, { class: "field grow" }),
    el("label.check", isNull, " null"));
  return { element, control, read: () => (isNull.checked ? null : parseValue(type, control.value)) };
};

const changesOf = (record, controls) => Object.fromEntries(controls.flatMap(({ name, read }) => {
  let value;
  try {
    value = read();
  } catch {
    throw new Error(`${name}: not a value of its type.`);
  }
  return isSame(value, record.fields[name]) ? [] : [[name, value]];
}));

const editForm = ({ model, present, etag }, dialog, onDone) => {
  const controls = model.fields.filter(({ isKey, name }) => !isKey && name in present.fields)
    .map(({ name, type }) => ({ name, ...valueControl(name, type, present.fields[name]) }));
  const [who, message] = [input("author", author()), input("message", "")];
  const problem = el("div", { role: "alert" });
  const finish = () => { dialog.close(); onDone(); };
  const save = async () => {
    const fields = changesOf(present, controls);
    const line = JSON.stringify({ op: "update", model: model.name, key: present.key, fields });
    const parameters = { author: who.value.trim(), message: message.value.trim() };
    rememberAuthor(parameters.author);
    const answer = await post("/v1/mutations", parameters, `${line}\n`,
      { "If-Match": etag, "Content-Type": "application/x-ndjson" });
    changed();
    notify(answer.commit ? `Saved as ${answer.commit}.` : "Nothing changed.",
      { action: answer.commit && takeBack([answer.commit], onDone) });
    finish();
  };
  const submit = () => save().catch((error) => put(problem, el("p.bad", error.status === 412
    ? ["The record has changed meanwhile. ", button("Reload it", finish)] : error.message)));
  const content = form({}, submit, controls.map(({ element }) => element),
    el("div.line", labelled("Author", who), labelled("Message", message, { class: "field grow" })), problem,
    el("div.buttons", submitButton("Save"), button("Cancel", () => dialog.close())));
  content.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) content.requestSubmit();
  });
  return content;
};

export const editRecord = (state, onDone) => {
  const title = `Edit ${state.model.name} ${keyText(state.present.key)}`;
  openDialog(title, (dialog) => editForm(state, dialog, onDone));
};
