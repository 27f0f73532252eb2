// Builds elements. Data reaches the document only as text or as one of the attributes below, never as HTML.

const attributes = new Set(("id href title type name value for role tabindex dir rows placeholder "
  + "autocomplete spellcheck min max step scope colspan download open checked selected required hidden "
  + "viewBox width height x y cx cy r d preserveAspectRatio").split(" "));

const setAttribute = (element, name, value) => {
  const isKnown = attributes.has(name) || name.startsWith("aria-") || name.startsWith("data-");
  if (!isKnown) throw new Error(`unknown attribute ${name}`);
  if (name === "href" && !/^(#|blob:)/.test(value)) throw new Error("links stay in the page");
  element.setAttribute(name, value === true ? "" : String(value));
};

const isProps = (value) => value?.constructor === Object;

const make = (namespace) => (selector, ...rest) => {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElementNS(namespace, tag);
  const props = isProps(rest[0]) ? rest.shift() : {};
  const className = [...classes, props.class].filter(Boolean).join(" ");
  if (className) element.setAttribute("class", className);
  for (const [name, value] of Object.entries(props)) {
    if (name === "class" || value === undefined || value === null || value === false) continue;
    if (name === "on") Object.entries(value).forEach(([event, f]) => element.addEventListener(event, f));
    else setAttribute(element, name, value);
  }
  put(element, ...rest);
  return element;
};

/** Replaces what is in an element; absent children and false are left out. */
export const put = (element, ...children) => element.replaceChildren(...children.flat(Infinity)
  .filter((child) => child !== null && child !== undefined && child !== false));

/** el("tag.class", props?, …children); props are attributes, `class`, and `on: { event: listener }`. */
export const el = make("http://www.w3.org/1999/xhtml");
export const svg = make("http://www.w3.org/2000/svg");

/** A text from data: isolated, so that right-to-left names do not reorder what surrounds them. */
export const data = (text, className) => el("bdi", { class: className }, String(text));

export const button = (label, onClick, props) =>
  el("button", { type: "button", on: { click: onClick }, ...props }, label);

export const submitButton = (label, className = "primary") =>
  el("button", { type: "submit", class: className }, label);

export const form = (props, onSubmit, ...children) => {
  const submit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return el("form", { ...props, on: { submit } }, children);
};

export const openDialog = (title, content) => {
  const dialog = el("dialog", { "aria-labelledby": "dialogtitle" }, el("h2", { id: "dialogtitle" }, title));
  dialog.append(...[content(dialog)].flat());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
};

let fields = 0;

export const labelled = (label, control, props) => {
  control.id ||= `field${++fields}`;
  return el("div.field", { ...props }, el("label", { for: control.id }, label), control);
};

export const input = (name, value, props) => el("input", {
  type: "text", name, value: value ?? "", autocomplete: "off", spellcheck: "false", dir: "auto", ...props,
});

export const select = (name, options, value, props) =>
  el("select", { name, ...props }, options.map((option) => {
    const [key, label] = Array.isArray(option) ? option : [option, option];
    return el("option", { value: key, selected: key === (value ?? "") }, label);
  }));

/** Terms with their values; those without a value are left out. */
export const facts = (rows) => el("dl.facts", rows.filter(([, value]) => value)
  .map(([term, value]) => el("div", el("dt", term), el("dd", value))));

export const scroller = (label, ...children) =>
  el("div.scroller", { tabindex: "0", role: "group", "aria-label": label }, children);

/**
 * A table in a scroller. Rows are arrays of cells, the first one the head of its row, or { props, cells }.
 * Columns whose heads begin with "#" hold numbers.
 */
export const table = (label, heads, rows, props) => {
  const classOf = (index) => (heads[index]?.startsWith("#") ? "number" : undefined);
  const row = ({ props: own, cells }) => el("tr", own ?? {}, cells.map((cell, index) => (index === 0
    ? el("th", { scope: "row" }, cell) : el("td", { class: classOf(index) }, cell))));
  const head = (text, index) => el("th", { scope: "col", class: classOf(index) }, text.replace("#", ""));
  return scroller(label, el("table", props ?? {},
    el("thead", el("tr", heads.map(head))),
    el("tbody", rows.map((one) => row(Array.isArray(one) ? { cells: one } : one)))));
};
