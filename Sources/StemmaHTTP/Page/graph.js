// The branches of a history, drawn as lanes beside its rows, newest on top.
import { svg } from "./dom.js";

const height = 46;
const laneWidth = 14;
const mostLanes = 12;

const freeLane = (lanes) => (lanes.includes(null) ? lanes.indexOf(null) : lanes.length);

/** A lane that leads to the parent already is joined; otherwise the first parent continues the child's. */
const laneFor = (parent, lanes, lane) => {
  if (lanes.includes(parent)) return lanes.indexOf(parent);
  return lanes[lane] === null ? lane : freeLane(lanes);
};

/**
 * For each event its lane, and the edges [from lane, to lane] between its row and the row below.
 * `lanes` holds for each lane the event that its line leads to; only one lane leads to an event.
 */
export const lanesOf = (events) => {
  const known = new Set(events.map(({ event }) => event));
  const lanes = [];
  return events.map(({ event, parents }) => {
    const lane = lanes.includes(event) ? lanes.indexOf(event) : freeLane(lanes);
    lanes[lane] = null;
    const edges = lanes.flatMap((target, at) => (target === null ? [] : [[at, at]]));
    for (const parent of (parents ?? []).filter((name) => known.has(name))) {
      const to = laneFor(parent, lanes, lane);
      lanes[to] = parent;
      edges.push([lane, to]);
    }
    return { lane, edges };
  });
};

export const graphWidth = (lanes) => {
  const widest = Math.max(0, ...lanes.map(({ lane, edges }) => Math.max(lane, ...edges.flat())));
  return (Math.min(widest, mostLanes) + 1) * laneWidth + 4;
};

const xOf = (lane) => Math.min(lane, mostLanes) * laneWidth + laneWidth / 2 + 2;
const line = (from, to, y1, y2) => {
  const [x1, x2] = [xOf(from), xOf(to)];
  const middle = (y1 + y2) / 2;
  return svg("path", { class: `lane lane${(to > from ? to : from) % 3}`,
    d: x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` });
};

export const graphCell = (rows, index, width) => {
  const { lane } = rows[index];
  const above = index > 0 ? rows[index - 1].edges : [];
  const half = height / 2;
  return svg("svg.graph", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    above.map(([from, to]) => line(from, to, -half, half)),
    rows[index].edges.map(([from, to]) => line(from, to, half, height + half)),
    svg("circle", { class: `lane lane${lane % 3}`, cx: xOf(lane), cy: half, r: 4.5 }));
};
