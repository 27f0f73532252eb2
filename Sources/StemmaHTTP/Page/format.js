// Numbers, times and values as texts and elements.
import { data, el } from "./dom.js";

const grouped = new Intl.NumberFormat("en-US");
export const number = (value) => (value === null || value === undefined ? "–" : grouped.format(value));

export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

export const bytes = (value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = value > 0 ? Math.min(Math.floor(Math.log2(value) / 10), 4) : 0;
  return `${step === 0 ? number(value) : (value / 1024 ** step).toFixed(1)} ${units[step]}`;
};

/** A time in UTC, as `stemma log` shows it, without what cannot be seen at a glance. */
export const time = (text) => (text ? text.replace("T", " ").replace(/\.\d+Z$|Z$/, "") : "");

export const timeNode = (text) => el("span", { class: "time", title: text ? `${text} (UTC)` : undefined }, time(text));

/** The time in a hybrid timestamp: milliseconds in front of sixteen bits of a counter. */
export const timestampTime = (timestamp) =>
  new Date(Number(BigInt(timestamp) >> 16n)).toISOString();

/** How long ago a time was, in the largest fitting unit. */
export const ago = (text) => {
  const seconds = Math.max(0, (Date.now() - Date.parse(text)) / 1000);
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, name] = units.find(([unit]) => seconds >= unit) ?? units[3];
  return `${count(Math.floor(seconds / size), name)} ago`;
};

const isPlain = (value) => typeof value === "string" && value !== "";

export const valueText = (value) =>
  (isPlain(value) ? value : value === "" ? "empty text" : value === undefined ? "unwritten" : JSON.stringify(value));

/** A value on one line; null and the empty text look unlike texts of that wording. */
export const valueNode = (value, className = "") => {
  const kind = value === null || value === "" || value === undefined ? "absent" : typeof value === "string" ? "" : "literal";
  return data(valueText(value), `value ${kind} ${className}`.trim());
};

/** old → new */
export const changeNode = (from, to) => el("span", { class: "change" },
  el("span", { class: "unseen" }, "from "), valueNode(from, "from"),
  el("span", { class: "arrow", "aria-hidden": "true" }, " → "), el("span", { class: "unseen" }, " to "), valueNode(to, "to"));

const keyValues = (key) => (Array.isArray(key) ? key : Object.values(key));

/** The parts of a key as people read them. */
export const keyText = (key) => keyValues(key).map(valueText).join(" / ");

export const recordNode = (model, key) => el("span", { class: "recordname" },
  data(model, "model"), el("span", { class: "slash" }, " "),
  keyValues(key).map((value, index) => [index > 0 && el("span", { class: "slash" }, " / "), valueNode(value)]));

/** The parts of a key as the API and the addresses of the page write them; null for keys without names. */
export const keyForm = (key) => (Array.isArray(key) ? null
  : Object.entries(key).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&"));

/** The inverse of `keyForm`, with texts as values. */
export const keyOf = (form) => Object.fromEntries(form.split("&").map((part) => {
  const at = part.indexOf("=");
  return [decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))];
}));

export const isSame = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

const ruleWords = {
  unwritten: "nobody has written it",
  only: "the only write",
  agree: "all writes agree",
  earliest: "the earliest write goes first",
  latest: "the latest write goes first",
  "delete wins": "the deletion goes first",
  "update wins": "the change goes first",
  version: "the longer history goes first",
  timestamp: "versions are equal, the later time goes first",
  origin: "version and time are equal, the higher origin goes first",
  sequence: "version, time and origin are equal, the later write goes first",
};
export const ruleText = (rule) => ruleWords[rule] ?? rule ?? "";

export const kindText = (kind) => ({ value: "values differ", delete: "deleted and changed",
  cardinality: "several links where one may be", dangling: "refers to a record that is not there" })[kind] ?? kind;
