// What is selected in a list, beside it on wide screens and in its place on narrow ones.
import { button, el, put } from "./dom.js";

export const sidePanel = (page, label, list, close) => {
  const element = el("aside.panel", { "aria-label": label });
  return {
    element: el("div.split", list.element, element),
    show(title, ...content) {
      const closeButton = button("Close", close, { class: "quiet" });
      put(element, el("header.panelhead", el("h2", title), closeButton), content);
      page.main.classList.add("opened");
    },
    clear() {
      const hadFocus = element.contains(document.activeElement);
      put(element);
      page.main.classList.remove("opened");
      if (hadFocus) list.activate(list.active);
    },
  };
};
