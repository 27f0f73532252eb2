// Bars: events over time, and sizes beside names.
import { el, svg, table } from "./dom.js";
import { count, number } from "./format.js";
import { link } from "./route.js";

const mostBars = 90;
const day = 86400000;
const dateText = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 10);

const monthStart = (milliseconds, size, step) => {
  const date = new Date(milliseconds);
  const months = date.getUTCFullYear() * 12 + date.getUTCMonth();
  return new Date(0).setUTCFullYear(0, (Math.floor(months / size) + step) * size, 1);
};

/** Each span knows its beginning around a time, and the beginning of the next one. */
const months = (size) => ({
  start: (time) => monthStart(time, size, 0),
  next: (time) => monthStart(time, size, 1),
});
const weekStart = (time) => time - ((new Date(time).getUTCDay() + 6) % 7) * day;
const spans = [
  { name: "day", start: (time) => time, next: (time) => time + day },
  { name: "week", start: weekStart, next: (time) => weekStart(time) + 7 * day },
  { name: "month", ...months(1) },
  { name: "quarter", ...months(3) },
  { name: "year", ...months(12) },
];

const barsOf = (days, span) => {
  const last = Date.parse(days.at(-1).date);
  const bars = [];
  let from = span.start(Date.parse(days[0].date));
  for (; from <= last && bars.length <= mostBars; from = span.next(from)) {
    bars.push({ from, to: span.next(from) - day, events: 0 });
  }
  return bars;
};

const group = (days) => {
  const span = spans.find((one) => barsOf(days, one).length <= mostBars) ?? spans.at(-1);
  const bars = barsOf(days, span);
  let at = 0;
  for (const { date, events } of days) {
    while (at < bars.length - 1 && Date.parse(date) > bars[at].to) at++;
    bars[at].events += events;
  }
  return { span, bars };
};

const spanText = ({ from, to }) => (from === to ? dateText(from) : `${dateText(from)} to ${dateText(to)}`);

const summary = (span, bars) => {
  const total = bars.reduce((sum, bar) => sum + bar.events, 0);
  const top = bars.reduce((best, bar) => (bar.events > best.events ? bar : best));
  return `Events per ${span.name}, ${dateText(bars[0].from)} to ${dateText(bars.at(-1).to)}: `
    + `${number(total)} in all; most, ${number(top.events)}, `
    + `${top.from === top.to ? "on" : "in"} ${spanText(top)}.`;
};

const barLinks = (bars) => {
  const links = bars.map((bar, index) => {
    const title = `${spanText(bar)}: ${count(bar.events, "event")}`;
    const href = link("events", { since: dateText(bar.from), until: dateText(bar.to) });
    return el("a", { href, title, "aria-label": title, tabindex: index === bars.length - 1 ? "0" : "-1" });
  });
  const onKey = (event) => {
    const to = links[links.indexOf(event.target) + { ArrowLeft: -1, ArrowRight: 1 }[event.key]];
    if (!to) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  return el("div.barlinks", { role: "group", "aria-label": "Events by time", on: { keydown: onKey } }, links);
};

export const timeChart = (days) => {
  if (days.length === 0) return el("p.status", "No events yet.");
  const { span, bars } = group(days);
  const top = Math.max(...bars.map((bar) => bar.events), 1);
  const rects = bars.map((bar, index) => {
    const height = bar.events === 0 ? 0 : Math.max(1.5, (bar.events / top) * 100);
    return svg("rect", { x: index + 0.12, y: 100 - height, width: 0.76, height });
  });
  const text = summary(span, bars);
  const plot = el("div.plot", svg("svg", {
    viewBox: `0 0 ${bars.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": text,
  }, rects), barLinks(bars));
  plot.style.maxWidth = `${bars.length * 80}px`;
  return el("figure.timechart", plot,
    el("figcaption", text));
};

export const sizeBar = (size, largest) => svg("svg.bar", {
  viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true",
}, svg("rect", { x: 0, y: 0, width: Math.max(0.6, (size / Math.max(largest, 1)) * 100), height: 10 }));

export const barTable = (label, heads, rows) => {
  const largest = Math.max(...rows.map(({ size }) => size));
  return table(label, [...heads, "Share"], rows.map(({ size, cells }) =>
    [...cells, sizeBar(size, largest)]));
};
