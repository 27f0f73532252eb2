// The form that changes fields of a record.
import { modelPath, post, read } from "./api.js";
import { author, rememberAuthor } from "./author.js";
import { changed, takeBack } from "./changes.js";
import { button, data, el, form, input, labelled, openDialog, put, select, submitButton } from "./dom.js";
import { changeNode, keyForm, keyText } from "./format.js";
import { notify } from "./notice.js";

const texts = [
  "ID", "String", "AWSDate", "AWSTime", "AWSDateTime", "AWSEmail", "AWSPhone", "AWSURL", "AWSIPAddress",
];
const isJSONType = (type) => /^(\[.*|Int|Float|Boolean|AWSTimestamp|AWSJSON)$/.test(type);

/** Whether a typed value is a text. Of the other types, enums are texts, and embedded types are objects. */
const isText = (type, text, old) => texts.includes(type)
  || (!isJSONType(type) && (typeof old !== "object" || !/^\s*\{/.test(text)));

/**
 * The JSON of a typed value. Numbers, lists and objects stay as they were typed, because JavaScript would
 * round what has more than 15 digits.
 */
const jsonOf = (type, text, old) => {
  if (isText(type, text, old)) return JSON.stringify(text);
  const json = text.trim();
  JSON.parse(json);
  if (/^(Int|AWSTimestamp)$/.test(type) && !/^-?\d+$/.test(json)) throw new Error("not an integer");
  if (type === "Float" && !Number.isFinite(Number(json))) throw new Error("not a finite number");
  return json;
};

export const valueControl = (label, type, value) => {
  const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value);
  // A control changes line ends, so only what a person has changed is read from it.
  let isTouched = false;
  const control = type === "Boolean" ? select("value", ["true", "false"], text || "false")
    : /\n/.test(text) || text.length > 80
      ? el("textarea", { rows: 6, dir: "auto", spellcheck: "false" }, text)
      : input("value", text);
  const isNull = el("input", { type: "checkbox", checked: value === null, "aria-label": `${label}: null` });
  control.addEventListener("input", () => { isTouched = true; isNull.checked = false; });
  isNull.addEventListener("change", () => { isTouched = true; });
  const element = el("div.valuecontrol", labelled(data(label), control, { class: "field grow" }),
    el("label.check", isNull, " null"));
  return {
    element, control,
    get isTouched() { return isTouched; },
    /** The value as JSON. */
    read: () => (isNull.checked ? "null" : jsonOf(type, control.value, value)),
  };
};

/** The changed fields as the members of a JSON object. */
const changesOf = (controls) => controls.filter(({ own }) => own.isTouched).map(({ name, own }) => {
  try {
    return `${JSON.stringify(name)}:${own.read()}`;
  } catch {
    throw new Error(`${name}: not a value of its type.`);
  }
});

/** What a record has become since it was shown. */
const news = (before, now) => {
  const found = Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(before[name]));
  return [
    el("p.bad", "The record has changed meanwhile. Saving again writes the fields of this form over it."),
    el("ul", found.map((name) => el("li", data(name), ": ", changeNode(before[name], now[name])))),
  ];
};

const editForm = ({ model, present, etag }, dialog, onDone) => {
  let seen = { data: present, etag };
  const controls = model.fields.filter(({ isKey, name }) => !isKey && name in present.fields)
    .map(({ name, type }) => ({ name, own: valueControl(name, type, present.fields[name]) }));
  const [who, message] = [input("author", author()), input("message", "")];
  const problem = el("div", { role: "alert" });
  const finish = () => { dialog.close(); onDone(); };
  let isBusy = false;
  const save = async () => {
    const members = changesOf(controls);
    if (members.length === 0) throw new Error("Nothing was changed.");
    const head = JSON.stringify({ op: "update", model: model.name, key: present.key });
    const line = `${head.slice(0, -1)},"fields":{${members.join(",")}}}`;
    const parameters = { author: who.value.trim(), message: message.value.trim() };
    rememberAuthor(parameters.author);
    const answer = await post("/v1/mutations", parameters, `${line}\n`,
      { "If-Match": seen.etag, "Content-Type": "application/x-ndjson" });
    changed();
    notify(answer.commit ? `Saved as ${answer.commit}.` : "Nothing changed.",
      { action: answer.commit && takeBack([answer.commit], onDone) });
    finish();
  };
  const explain = async (error) => {
    if (error.status !== 412) throw error;
    const now = await read(modelPath("records", model.name, keyForm(present.key)));
    put(problem, news(seen.data.fields, now.data.fields), button("Discard this form", finish));
    seen = now;
  };
  const submit = async () => {
    if (isBusy) return;
    isBusy = true;
    await save().catch(explain).catch((error) => put(problem, el("p.bad", error.message)));
    isBusy = false;
  };
  const content = form({}, submit, controls.map(({ own }) => own.element),
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
