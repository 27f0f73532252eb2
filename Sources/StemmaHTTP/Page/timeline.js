// The slider over the steps of a history, and a moment as text.
import { button, data, el, form, input, labelled, put, submitButton } from "./dom.js";
import { time } from "./format.js";

const stepText = (steps, step) => {
  if (step === 0) return ["Before the first event"];
  const event = steps[step - 1];
  return [`Step ${step} of ${steps.length}: `, el("span.position", `@${event.position}`), ` ${event.op} `,
    event.author && ["by ", data(event.author), " "], el("span.dim", time(event.time)),
    step === steps.length && el("span.tag", "now")];
};

export const timeline = (steps, asOf, onStep, onMoment) => {
  const text = el("p", { "aria-live": "polite" });
  const range = el("input", { type: "range", min: 0, max: steps.length, step: 1, value: steps.length });
  range.addEventListener("input", () => onStep(Number(range.value)));
  const moment = input("asOf", asOf, { placeholder: "yesterday, 2h, @17" });
  const say = (nodes) => put(text, nodes);
  const element = el("div.timeline", text,
    el("div.line",
      button("‹", () => onStep(Number(range.value) - 1), { "aria-label": "Older" }),
      labelled("Step in the history", range, { class: "field grow" }),
      button("›", () => onStep(Number(range.value) + 1), { "aria-label": "Newer" }),
      form({ class: "line" }, () => onMoment(moment.value.trim()),
        labelled("As of", moment), submitButton("Show", "")),
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
