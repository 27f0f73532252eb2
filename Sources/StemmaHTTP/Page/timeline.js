// The slider over the steps of a history, and a moment as text.
import { button, data, el, input, labelled } from "./dom.js";
import { time } from "./format.js";

const stepText = (steps, step) => {
  if (step === 0) return ["Before the first event"];
  const event = steps[step - 1];
  return [`Step ${step} of ${steps.length}: `, el("span", { class: "position" }, `@${event.position}`), ` ${event.op} `,
    event.author && ["by ", data(event.author), " "], el("span", { class: "dim" }, time(event.time)),
    step === steps.length && el("span", { class: "now" }, "now")];
};

export const timeline = (steps, asOf, onStep, onMoment) => {
  const text = el("p", { class: "steptext", "aria-live": "polite" });
  const range = el("input", { type: "range", min: 0, max: steps.length, step: 1, value: steps.length });
  range.addEventListener("input", () => onStep(Number(range.value)));
  const moment = input("asOf", asOf, { placeholder: "yesterday, 2h, @17" });
  const submit = (event) => {
    event.preventDefault();
    if (moment.value.trim()) onMoment(moment.value.trim());
  };
  const say = (nodes) => text.replaceChildren(...nodes.flat(2).filter(Boolean));
  const element = el("div", { class: "timeline" }, text,
    el("div", { class: "line" },
      button("‹", () => onStep(Number(range.value) - 1), { "aria-label": "Older", title: "Older (←)" }),
      labelled("Step in the history", range, { class: "field grow" }),
      button("›", () => onStep(Number(range.value) + 1), { "aria-label": "Newer", title: "Newer (→)" }),
      el("form", { class: "line", on: { submit } }, labelled("As of", moment), el("button", { type: "submit" }, "Show")),
      button("Now", () => onStep(steps.length))));
  return {
    element,
    say,
    show(step) {
      range.value = step;
      moment.value = "";
      say(stepText(steps, step));
      range.setAttribute("aria-valuetext", text.textContent);
    },
  };
};
