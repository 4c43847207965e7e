// <exegete-words>: the words of all texts, by what attention gives them and by what another method does.
// Both scales are logarithmic; 1 is an even share of a text, and what is below the floor stands on it. Where two words
// would overlap, the rarer is a dot.

import { draw, make, number } from "./dom.js";

const LEFT = 48, BOTTOM = 44, TOP = 16, RIGHT = 18, SMALL = 11, LARGE = 18, FLOOR = 1 / 32;

export class Words extends HTMLElement {
  /** @param {any} found words, and the model that they are of */
  open(found) {
    this.found = found;
    this.seen ??= new ResizeObserver(() => this.show());
    this.seen.observe(this);
    this.show();
  }

  disconnectedCallback() { this.seen?.disconnect(); }

  show() {
    const wide = Math.round(Math.min(960, Math.max(280, this.clientWidth))), tall = Math.round(Math.min(560, Math.max(320, wide * 0.62)));
    if (!this.found || this.drawn === `${wide} ${this.found.key}`) return;
    this.drawn = `${wide} ${this.found.key}`;
    const { rows, cell } = this.found;
    const values = rows.flatMap(({ attention, other }) => [attention, other]);
    const most = Math.max(2, ...values) * 1.15, least = Math.max(FLOOR, Math.min(0.5, ...values) / 1.15);
    const share = (v) => Math.log(Math.max(v, least) / least) / Math.log(most / least);
    const across = (v) => LEFT + (wide - LEFT - RIGHT) * share(v), up = (v) => tall - BOTTOM - (tall - BOTTOM - TOP) * share(v);
    const say = (given, text) => draw("text", given, document.createTextNode(text));
    const ticks = [["1/32", 1 / 32], ["1/16", 1 / 16], ["1/8", 1 / 8], ["1/4", 1 / 4], ["1/2", 1 / 2], ["1", 1], ["2", 2], ["4", 4], ["8", 8], ["16", 16], ["32", 32]].filter(([, v]) => v >= least && v <= most);
    const middle = (LEFT + wide - RIGHT) / 2;
    this.svg = /** @type {any} */ (draw("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": this.spoken() },
      draw("path", { class: "axes", d: `M${LEFT} ${TOP}V${tall - BOTTOM}H${wide - RIGHT}` }),
      draw("line", { class: "even", x1: across(least), y1: up(least), x2: across(most), y2: up(most) }),
      ...ticks.flatMap(([said, v]) => [say({ x: across(v), y: tall - BOTTOM + 15, "text-anchor": "middle" }, said), say({ x: LEFT - 6, y: up(v) + 4, "text-anchor": "end" }, said)]),
      say({ class: "title", x: middle, y: tall - 8, "text-anchor": "middle" }, "attention →"),
      say({ class: "title", x: 0, y: 0, transform: `translate(12 ${(TOP + tall - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${cell.method_label} →`),
      ...this.marks(rows, across, up, wide)));
    this.replaceChildren(this.svg);
  }

  /** Frequent words first: a word where there is room, else a dot. */
  marks(rows, across, up, wide) {
    const taken = [], often = Math.log(Math.max(2, ...rows.map(({ count }) => count)));
    const marked = [...rows].sort((a, b) => b.count - a.count).map((row) => {
      const size = SMALL + ((LARGE - SMALL) * Math.log(row.count)) / often, half = row.word.length * size * 0.28 + 1;
      const y = up(row.other), x = Math.min(Math.max(across(row.attention), LEFT + half), wide - half);
      const room = { left: x - half, right: x + half, top: y - size * 0.8, bottom: y + size * 0.3 };
      const free = taken.every((other) => room.right < other.left || room.left > other.right || room.bottom < other.top || room.top > other.bottom);
      if (free) taken.push(room);
      const mark = free ? draw("text", { class: "word-mark", x, y: y + size * 0.3, "font-size": size, "text-anchor": "middle" }, document.createTextNode(row.word))
        : draw("circle", { class: "word-dot", cx: across(row.attention), cy: y, r: 2.5 });
      mark.append(draw("title", {}, document.createTextNode(`${row.word}: attention ${number(row.attention, 2)}, ${this.found.cell.method_label} ${number(row.other, 2)}, ${row.count} times`)));
      mark.addEventListener("click", () => this.dispatchEvent(new CustomEvent("word", { detail: row.word, bubbles: true })));
      return mark;
    });
    return marked.sort((a, b) => Number(a.tagName === "text") - Number(b.tagName === "text"));
  }

  spoken() {
    const { rows, cell } = this.found, apart = [...rows].sort((a, b) => b.attention - b.other - a.attention + a.other);
    const named = (some) => some.map(({ word }) => word).join(", ");
    return `${rows.length} words by attention and by ${cell.method_label}. Attention gives most beyond it to ${named(apart.slice(0, 3))}, least to ${named(apart.slice(-3).reverse())}.`;
  }

  /** The same as a table, for those who can't see it, with every word to be searched for. */
  table() {
    const { rows, cell } = this.found;
    const search = (word) => make("button", { type: "button", className: "link", onclick: () => this.dispatchEvent(new CustomEvent("word", { detail: word, bubbles: true })) }, word);
    const line = (row) => make("tr", {}, make("th", { scope: "row" }, search(row.word)), ...[number(row.attention, 2), number(row.other, 2), String(row.count)].map((said) => make("td", { className: "number" }, said)));
    const head = ["word", "attention", cell.method_label, "times"].map((said, i) => make("th", { scope: "col", className: i ? "number" : "" }, said));
    return make("table", {}, make("caption", {}, "Mean importance; 1 is an even share of a text."), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows.map(line)));
  }
}

customElements.define("exegete-words", Words);
