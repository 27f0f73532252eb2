// What happened: short notices at the bottom, and a live region for screen readers.
import { button, el } from "./dom.js";

let pending = [];
let timer = null;

/** Says a text to screen readers; at most every few seconds, so that a busy log does not talk without end. */
export const announce = (text) => {
  pending = [text];
  timer ??= setTimeout(() => {
    document.getElementById("live").textContent = pending.pop() ?? "";
    timer = setTimeout(() => { timer = null; if (pending.length > 0) announce(pending.pop()); }, 3000);
  }, 50);
};

/** A notice that stays until it is closed, followed by another, or its action is taken. */
export const notify = (text, { isBad = false, action = null } = {}) => {
  const region = document.getElementById("notices");
  const close = () => notice.remove();
  const act = action && button(action.label, () => { close(); action.run(); }, { class: "primary" });
  const notice = el("div", { class: isBad ? "notice bad" : "notice", role: isBad ? "alert" : undefined },
    el("span", {}, text), act, button("Close", close, { class: "quiet" }));
  region.replaceChildren(notice);
  if (!isBad) announce(text);
  if (!isBad && !action) setTimeout(close, 8000);
};

/** Asks in a dialog; the promise is true if the answer is yes. */
export const confirm = (title, text, label) => new Promise((resolve) => {
  const heading = el("h2", { id: "question" }, title);
  const dialog = el("dialog", { "aria-labelledby": "question" }, heading, el("p", {}, text),
    el("div", { class: "buttons" },
      button(label, () => dialog.close("yes"), { class: "primary" }),
      button("Cancel", () => dialog.close("no"))));
  dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
  document.body.append(dialog);
  dialog.showModal();
});
