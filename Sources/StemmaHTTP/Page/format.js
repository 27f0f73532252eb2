// Numbers, times and values as texts and elements.
import { data, el } from "./dom.js";
import { recordLink } from "./route.js";

const grouped = new Intl.NumberFormat("en-US");
export const number = (value) => (value === null || value === undefined ? "–" : grouped.format(value));

export const count = (value, one) => `${number(value)} ${one}${value === 1 ? "" : "s"}`;

export const bytes = (value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = value > 0 ? Math.min(Math.floor(Math.log2(value) / 10), 4) : 0;
  return `${step === 0 ? number(value) : (value / 1024 ** step).toFixed(1)} ${units[step]}`;
};

export const time = (text) => (text ? text.replace("T", " ").replace(/\.\d+Z$|Z$/, "") : "");

export const timeNode = (text) => el("span.time", { title: `${text} (UTC)` }, time(text));

/** The time in a hybrid timestamp: milliseconds in front of sixteen bits of a counter. */
export const timestampTime = (timestamp) => new Date(Number(BigInt(timestamp) >> 16n)).toISOString();

export const ago = (text) => {
  const seconds = Math.max(0, (Date.now() - Date.parse(text)) / 1000);
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, name] = units.find(([unit]) => seconds >= unit) ?? units[3];
  return `${count(Math.floor(seconds / size), name)} ago`;
};

const isPlain = (value) => typeof value === "string" && value !== "";

export const valueText = (value) => {
  if (isPlain(value)) return value;
  if (value === "") return "empty text";
  return value === undefined ? "unwritten" : JSON.stringify(value);
};

/** A value on one line; null and the empty text look unlike texts of that wording. */
export const valueNode = (value, className = "") => {
  const isAbsent = value === null || value === "" || value === undefined;
  return data(valueText(value), `value ${isAbsent ? "absent" : ""} ${className}`);
};

export const changeNode = (from, to) => el("span.change",
  el("span.unseen", "from "), valueNode(from, "from"),
  el("span.arrow", { "aria-hidden": "true" }, " → "), el("span.unseen", " to "), valueNode(to, "to"));

export const opNode = ({ op }) => el("span", { class: `op ${op}` }, op);

const keyValues = (key) => (Array.isArray(key) ? key : Object.values(key));

export const keyText = (key) => keyValues(key).map(valueText).join(" / ");

export const recordNode = (model, key) => el("span.recordname",
  data(model, "model"), el("span.slash", " "),
  keyValues(key).map((value, index) => [index > 0 && el("span.slash", " / "), valueNode(value)]));

const keyPart = ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;

/** The parts of a key as the API and the addresses of the page write them; null for keys without names. */
export const keyForm = (key) => (Array.isArray(key) ? null : Object.entries(key).map(keyPart).join("&"));

export const keyOf = (form) => Object.fromEntries(form.split("&").map((part) => {
  const at = part.indexOf("=");
  return [decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))];
}));

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** A key as a person reads and types it, without the encoding. */
export const readableKey = (form) => form.split("&").map(decoded).join(" ");

/**
 * The form of a key that a person types: `978-0`, `site=berlin&number=1`, or `site=berlin number=1`.
 * `names` are those of its parts; a text without any is the value of the only part.
 */
export const typedKey = (text, names) => {
  const name = names.length > 0 ? names.join("|") : "\\w+";
  const [first, ...rest] = text.trim().split(new RegExp(`(?:^|[&,\\s]+)(${name})=`));
  if (first !== "" || rest.length === 0) return encodeURIComponent(decoded(text.trim()));
  const parts = rest.map((part, index) => (index % 2 === 0 ? [part, decoded(rest[index + 1].trim())] : null));
  return parts.filter(Boolean).map(keyPart).join("&");
};

export const recordAnchor = ({ model, key }) => (keyForm(key) === null ? recordNode(model, key)
  : el("a", { href: recordLink(model, keyForm(key)) }, recordNode(model, key)));

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
  timestamp: "of equal versions the later time goes first",
  origin: "of equal times the higher origin goes first",
  sequence: "of one origin the later write goes first",
};
export const ruleText = (rule) => ruleWords[rule] ?? rule ?? "";

export const kinds = ["value", "delete", "cardinality", "dangling"];
export const operations = ["create", "update", "delete", "link", "unlink", "resolve"];

const kindWords = {
  value: "values differ",
  delete: "deleted and changed",
  cardinality: "several links where one may be",
  dangling: "refers to a record that is not there",
};
export const kindText = (kind) => kindWords[kind] ?? kind;
