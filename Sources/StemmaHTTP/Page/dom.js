// Builds elements. Data reaches the document only as text or as one of the attributes below, never as HTML.

const attributes = new Set([
  "id", "href", "title", "type", "name", "value", "for", "role", "tabindex", "lang", "dir", "rows", "cols",
  "placeholder", "autocomplete", "spellcheck", "inputmode", "min", "max", "step", "scope", "colspan", "list",
  "download", "open", "disabled", "checked", "selected", "required", "readonly", "multiple", "hidden", "enterkeyhint",
  "viewBox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d", "rx", "preserveAspectRatio",
]);

const setAttribute = (element, name, value) => {
  const isKnown = attributes.has(name) || name.startsWith("aria-") || name.startsWith("data-");
  if (!isKnown) throw new Error(`unknown attribute ${name}`);
  if (name === "href" && !/^(#|blob:)/.test(value)) throw new Error("links stay in the page");
  element.setAttribute(name, value === true ? "" : String(value));
};

const fill = (element, props, children) => {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.setAttribute("class", value);
    else if (name === "on") Object.entries(value).forEach(([event, f]) => element.addEventListener(event, f));
    else setAttribute(element, name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

/** An HTML element; props are attributes, `class` and `on: { event: listener }`. */
export const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** An SVG element. */
export const svg = (tag, props, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

/** A text from data: isolated, so that right-to-left names do not reorder what surrounds them. */
export const data = (text, className) => el("bdi", { class: className }, String(text));

export const button = (label, onClick, props) =>
  el("button", { type: "button", on: { click: onClick }, ...props }, label);

let fields = 0;

/** A control with its visible label. */
export const labelled = (label, control, props) => {
  control.id ||= `field${++fields}`;
  return el("div", { class: "field", ...props }, el("label", { for: control.id }, label), control);
};

export const input = (name, value, props) =>
  el("input", { type: "text", name, value: value ?? "", autocomplete: "off", spellcheck: "false", dir: "auto", ...props });

/** Options are texts or [value, label]. */
export const select = (name, options, value, props) =>
  el("select", { name, ...props }, options.map((option) => {
    const [key, label] = Array.isArray(option) ? option : [option, option];
    return el("option", { value: key, selected: key === (value ?? "") }, label);
  }));

/** Rows of a description list: [term, description]; without description, a row is left out. */
export const facts = (rows) =>
  el("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));

/** A container that scrolls on its own, and can be reached by the keyboard. */
export const scroller = (label, ...children) =>
  el("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": label }, children);
