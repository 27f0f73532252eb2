// The difference between two texts, by lines, or within one line.
import { data, el } from "./dom.js";

const longest = 3000;

/** Lengths of the longest common subsequence of the rests of two lists. */
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
export const lineDiff = (from, to) => {
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

export const lineDiffNode = (from, to) => el("div", { class: "linediff" }, lineDiff(from, to).map(([sign, text]) =>
  el("div", { class: names[sign] }, el("span", { class: "sign", "aria-hidden": sign === " " ? "true" : undefined }, signs[sign]),
    data(text === "" ? " " : text))));

/** One line with the part marked that differs from the old text. */
export const inlineDiffNode = (from, to) => {
  const shorter = Math.min(from.length, to.length);
  let start = 0;
  while (start < shorter && from[start] === to[start]) start++;
  let end = 0;
  while (end < shorter - start && from.at(-1 - end) === to.at(-1 - end)) end++;
  const stop = to.length - end;
  return el("bdi", { class: "value full" }, to.slice(0, start), el("mark", {}, to.slice(start, stop)), to.slice(stop));
};
