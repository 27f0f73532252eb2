// The difference between two texts, by lines, or within one line.
import { data, el } from "./dom.js";
import { isSame, valueNode } from "./format.js";

// Longer texts show as removed and added: the table of lengths grows with the product of both.
const longest = 3000;

/** table[i][j]: how many lines the rest of `a` from i, and of `b` from j, have in common. */
const lengths = (a, b) => {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
};

const signed = (sign, lines) => lines.map((text) => [sign, text]);

/** Lines as [sign, text]: "+" only in the new text, "-" only in the old one, " " in both. */
const lineDiff = (from, to) => {
  const [a, b] = [from.split("\n"), to.split("\n")];
  if (a.length > longest || b.length > longest) return [...signed("-", a), ...signed("+", b)];
  const table = lengths(a, b);
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i++]]);
      j++;
    } else if (i < a.length && (j === b.length || table[i + 1][j] >= table[i][j + 1])) {
      lines.push(["-", a[i++]]);
    } else {
      lines.push(["+", b[j++]]);
    }
  }
  return lines;
};

const names = { "+": "added", "-": "removed", " ": "same" };
const signs = { "+": "+", "-": "−", " ": " " };

const lineNode = ([sign, text]) => el("div", { class: names[sign] },
  el("span.sign", { "aria-hidden": sign === " " && "true" }, signs[sign]), data(text === "" ? " " : text));

export const lineDiffNode = (from, to) => el("div.linediff", lineDiff(from, to).map(lineNode));

export const haveLines = (from, to) =>
  typeof from === "string" && typeof to === "string" && (from + to).includes("\n");

/** A value with what differs from an old one marked. */
export const differenceNode = (from, to) => {
  if (from === undefined || isSame(from, to)) return valueNode(to, "full");
  return haveLines(from, to) ? lineDiffNode(from, to) : el("mark", valueNode(to, "full"));
};
