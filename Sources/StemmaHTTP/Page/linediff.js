// The difference between two texts, by lines, or within one line.
import { data, el } from "./dom.js";
import { isSame, valueNode } from "./format.js";

const longest = 3000;

const lengths = (a, b) => {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
};

/** Lines as [sign, text]: "+" only in the new text, "-" only in the old one, " " in both. */
const lineDiff = (from, to) => {
  const [a, b] = [from.split("\n"), to.split("\n")];
  if (a.length > longest || b.length > longest) return [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  const table = lengths(a, b);
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { lines.push([" ", a[i++]]); j++; }
    else if (i < a.length && (j === b.length || table[i + 1][j] >= table[i][j + 1])) lines.push(["-", a[i++]]);
    else lines.push(["+", b[j++]]);
  }
  return lines;
};

const names = { "+": "added", "-": "removed", " ": "same" };
const signs = { "+": "+", "-": "−", " ": " " };

export const lineDiffNode = (from, to) => el("div.linediff", lineDiff(from, to).map(([sign, text]) =>
  el("div", { class: names[sign] }, el("span.sign", { "aria-hidden": sign === " " ? "true" : undefined }, signs[sign]),
    data(text === "" ? " " : text))));

/** A value with what differs from an old one marked. */
export const differenceNode = (from, to) => {
  if (from === undefined || isSame(from, to)) return valueNode(to, "full");
  return typeof from === "string" && typeof to === "string" && (from + to).includes("\n") ? lineDiffNode(from, to) : el("mark", valueNode(to, "full"));
};
