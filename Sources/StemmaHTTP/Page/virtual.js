// Long lists: only the rows that can be seen are in the document. All rows have the height --row.
import { button, el, put } from "./dom.js";

// Browsers cut elements beyond some ten million pixels; longer lists scroll faster instead.
const tallest = 8e6;
const spare = 6;

/**
 * Shows `items` between the spacers `before` and `after` of `viewport`.
 * `make(item, index)` makes a row; the row's link, or the row itself, takes the focus.
 */
export const virtualRows = ({
  viewport, rows, before, after, make, onNearEnd = () => {}, onScroll = () => {},
}) => {
  let items = [];
  let active = -1;
  let rowHeight = 30;
  let shown = new Map();

  const target = (row) => row.querySelector("a, button") ?? row;

  const geometry = () => {
    const full = items.length * rowHeight;
    const total = Math.min(full, tallest);
    const view = viewport.clientHeight;
    const scale = full > total ? (full - view) / (total - view) : 1;
    return { total, view, scale, top: viewport.scrollTop * scale };
  };

  const place = (first, last) => {
    const next = new Map();
    for (let index = first; index < last; index++) {
      const old = shown.get(index);
      const item = items[index];
      next.set(index, old?.item === item ? old : { item, row: make(item, index) });
    }
    const hadFocus = rows.contains(document.activeElement);
    for (const [index, { row }] of shown) if (next.get(index)?.row !== row) row.remove();
    let at = rows.firstChild;
    for (const { row } of next.values()) {
      if (row === at) at = at.nextSibling;
      else rows.insertBefore(row, at);
    }
    shown = next;
    // A row that leaves would take the focus along.
    if (hadFocus && !rows.contains(document.activeElement)) viewport.focus({ preventScroll: true });
  };

  const render = () => {
    const { total, view, top } = geometry();
    const first = Math.max(0, Math.floor(top / rowHeight) - spare);
    const last = Math.min(items.length, Math.ceil((top + view) / rowHeight) + spare);
    const above = Math.max(0, viewport.scrollTop - (top - first * rowHeight));
    place(first, last);
    before.style.height = `${above}px`;
    after.style.height = `${Math.max(0, total - above - (last - first) * rowHeight)}px`;
    if (last > items.length - 50) onNearEnd();
  };

  const reveal = (index) => {
    const { scale, top, view } = geometry();
    const head = viewport.querySelector("thead")?.offsetHeight ?? 0;
    const y = index * rowHeight;
    if (y < top) viewport.scrollTop = y / scale;
    else if (y + rowHeight > top + view - head) viewport.scrollTop = (y + rowHeight - view + head) / scale;
    draw();
  };

  const draw = () => {
    render();
    shown.forEach(({ row }, index) => row.classList.toggle("active", index === active));
  };

  const activate = (index) => {
    if (items.length === 0) return;
    active = Math.max(0, Math.min(index, items.length - 1));
    reveal(active);
    target(shown.get(active).row).focus({ preventScroll: true });
  };

  rows.addEventListener("focusin", (event) => {
    for (const [index, { row }] of shown) if (row.contains(event.target)) active = index;
    draw();
  });
  viewport.addEventListener("scroll", () => { draw(); onScroll(); }, { passive: true });
  const observer = new ResizeObserver(() => {
    rowHeight = parseFloat(getComputedStyle(viewport).getPropertyValue("--row"));
    draw();
  });
  observer.observe(viewport);

  return {
    get items() { return items; },
    get active() { return active; },
    set(next) { items = next; draw(); },
    append(more) { items = items.concat(more); draw(); },
    prepend(more) {
      items = more.concat(items);
      if (active >= 0) active += more.length;
      draw();
    },
    redraw() { put(rows); shown = new Map(); draw(); },
    move(delta) { activate(active < 0 ? (delta > 0 ? 0 : items.length - 1) : active + delta); },
    activate,
    isAtTop: () => viewport.scrollTop < 4,
    toTop() { viewport.scrollTop = 0; draw(); },
    close() { observer.disconnect(); },
  };
};

export const pager = (view, status, { onPage, onFailure, empty = "Nothing here." }) => {
  let source = null;
  let running = null;
  // After a failure only a person tries again.
  let hasFailed = false;
  const load = async (current) => {
    put(status, "Loading…");
    try {
      const rows = await current.more();
      if (current !== source) return;
      onPage(rows, current.isDone);
      put(status, current.isDone && view.items.length === 0 && empty);
    } catch (error) {
      if (current !== source || error.name === "AbortError") return;
      hasFailed = true;
      put(status, el("span.bad", { role: "alert" }, error.message), " ", button("Try again", again));
      if (view.items.length === 0) onFailure();
    }
  };
  const more = async () => {
    if (!source || source.isDone || hasFailed) return;
    running ??= load(source).finally(() => { running = null; });
    await running;
  };
  const again = () => {
    hasFailed = false;
    return more();
  };
  return { more, start: (next) => { source = next; return again(); } };
};
