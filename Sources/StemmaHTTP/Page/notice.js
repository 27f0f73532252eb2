// What happened: short notices at the bottom, and a live region for screen readers.
import { button, data, el, openDialog, put } from "./dom.js";

let pending = null;
let timer = null;

/** Says a text to screen readers; at most every few seconds, so that a busy log does not talk without end. */
export const announce = (text) => {
  pending = text;
  timer ??= setTimeout(() => {
    document.getElementById("live").textContent = pending;
    pending = null;
    timer = setTimeout(() => { timer = null; if (pending) announce(pending); }, 3000);
  }, 50);
};

const region = () => document.getElementById("notices");

export const focusNotice = () => region().querySelector("button")?.focus();

/** Shows a notice in place of the last one. With an action, or if bad, it stays until it is closed. */
export const notify = (text, { isBad = false, action = null } = {}) => {
  const close = () => {
    // The focus would be lost with the notice.
    const isInside = notice.contains(document.activeElement);
    if (isInside) (document.querySelector("h1") ?? document.getElementById("main")).focus();
    notice.remove();
  };
  const act = action && button([action.label, el("kbd", { "aria-hidden": "true" }, "n")],
    () => { close(); action.run(); }, { class: "primary" });
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  };
  const notice = el("div.notice", { class: isBad && "bad", role: isBad && "alert", on: { keydown: onKey } },
    data(text, "grow"), act, button("Close", close, { class: "quiet" }));
  put(region(), notice);
  if (!isBad) announce(action ? `${text} Press n to reach ${action.label}.` : text);
  if (!isBad && !action) setTimeout(close, 8000);
};

export const bannerOf = (sentence) => {
  const text = sentence.replace(/^./, (first) => first.toUpperCase()).replace(/\.?$/, ".");
  return el("div.problem.banner", { role: "alert" },
    el("p", el("strong.bad", "Corruption hides events. "), data(text)));
};

export const confirm = (title, text, label) => new Promise((resolve) => {
  const dialog = openDialog(title, (own) => [el("p", text), el("div.buttons",
    button(label, () => own.close("yes"), { class: "primary" }), button("Cancel", () => own.close("no")))]);
  dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
});
