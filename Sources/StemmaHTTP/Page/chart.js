// Bars: events over time, and sizes beside names.
import { data, el, svg } from "./dom.js";
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
const months = (size) => ({ start: (time) => monthStart(time, size, 0), next: (time) => monthStart(time, size, 1) });
const weekStart = (time) => time - ((new Date(time).getUTCDay() + 6) % 7) * day;
const spans = [
  { name: "day", start: (time) => time, next: (time) => time + day },
  { name: "week", start: weekStart, next: (time) => weekStart(time) + 7 * day },
  { name: "month", ...months(1) },
  { name: "quarter", ...months(3) },
  { name: "year", ...months(12) },
  { name: "decade", ...months(120) },
];

const barsOf = (days, span) => {
  const last = Date.parse(days.at(-1).date);
  const bars = [];
  for (let from = span.start(Date.parse(days[0].date)); from <= last && bars.length <= mostBars; from = span.next(from)) {
    bars.push({ from, to: span.next(from) - day, events: 0 });
  }
  return bars;
};

/** The smallest span with which the bars fit, and its bars. */
const group = (days) => {
  for (const span of spans) {
    const bars = barsOf(days, span);
    if (bars.length > mostBars) continue;
    let at = 0;
    for (const { date, events } of days) {
      while (Date.parse(date) > bars[at].to) at++;
      bars[at].events += events;
    }
    return { span, bars };
  }
  return { span: spans[0], bars: [] };
};

const spanText = ({ from, to }) => (from === to ? dateText(from) : `${dateText(from)} to ${dateText(to)}`);

const summary = (span, bars) => {
  const total = bars.reduce((sum, bar) => sum + bar.events, 0);
  const top = bars.reduce((best, bar) => (bar.events > best.events ? bar : best));
  return `Events per ${span.name}, ${dateText(bars[0].from)} to ${dateText(bars.at(-1).to)}: `
    + `${number(total)} in all; most, ${number(top.events)}, ${top.from === top.to ? "on" : "in"} ${spanText(top)}.`;
};

/** Links over the bars; one of them is in the order of tabs, arrow keys move between them. */
const barLinks = (bars) => {
  const links = bars.map((bar, index) => el("a", {
    href: link("events", { since: dateText(bar.from), until: dateText(bar.to) }),
    title: `${spanText(bar)}: ${count(bar.events, "event")}`,
    "aria-label": `${spanText(bar)}: ${count(bar.events, "event")}`,
    tabindex: index === bars.length - 1 ? "0" : "-1",
  }));
  const onKey = (event) => {
    const to = links[links.indexOf(event.target) + { ArrowLeft: -1, ArrowRight: 1 }[event.key]];
    if (!to) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  return el("div", { class: "barlinks", role: "group", "aria-label": "Events by time", on: { keydown: onKey } }, links);
};

export const timeChart = (days) => {
  if (days.length === 0) return el("p", { class: "liststatus" }, "No events yet.");
  const { span, bars } = group(days);
  const top = Math.max(...bars.map((bar) => bar.events), 1);
  const rects = bars.map((bar, index) => {
    const height = bar.events === 0 ? 0 : Math.max(1.5, (bar.events / top) * 100);
    return svg("rect", { x: index + 0.12, y: 100 - height, width: 0.76, height });
  });
  const text = summary(span, bars);
  return el("figure", { class: "timechart" },
    el("div", { class: "plot" },
      svg("svg", { viewBox: `0 0 ${bars.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": text }, rects),
      barLinks(bars)),
    el("div", { class: "axis", "aria-hidden": "true" },
      el("span", {}, dateText(bars[0].from)), el("span", {}, `highest: ${number(top)} per ${span.name}`),
      el("span", {}, dateText(bars.at(-1).to))),
    el("figcaption", {}, text));
};

/** Names with a bar by size; rows are { name, href, value, text, cells }. */
export const barTable = (label, rows, columns) => {
  const top = Math.max(...rows.map((row) => row.value), 1);
  const bar = (row) => {
    const rect = svg("rect", { x: 0, y: 0, width: Math.max(0.6, (row.value / top) * 100), height: 10 });
    return svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, rect);
  };
  return el("table", { "aria-label": label },
    el("thead", {}, el("tr", {}, columns.map((column, index) =>
      el("th", { scope: "col", class: index > 0 ? "number" : undefined }, column)), el("td", { class: "barcell" }))),
    el("tbody", {}, rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, row.href ? el("a", { href: row.href }, data(row.name)) : data(row.name)),
      row.cells.map((cell) => el("td", { class: "number" }, cell)), el("td", { class: "barcell" }, bar(row))))));
};
