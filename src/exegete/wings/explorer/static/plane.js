// <exegete-plane>: how far the weights went against how far the prediction followed, with the trail of what was tried.
// Across: JSD of the weights, at most ln 2. Up: TVD of the prediction, on a square-root scale, so that ε can be seen.

import { draw, number } from "./dom.js";

const WIDE = 320, TALL = 220, LEFT = 50, BOTTOM = 34, TOP = 10, RIGHT = 12;
const across = (jsd) => LEFT + ((WIDE - LEFT - RIGHT) * jsd) / Math.LN2;
const up = (tvd) => TALL - BOTTOM - (TALL - BOTTOM - TOP) * Math.sqrt(Math.min(1, tvd));

export class Plane extends HTMLElement {
  constructor() {
    super();
    this.clear();
    this.epsilon = 0.01;
  }

  clear() { Object.assign(this, { trail: [], drawn: [], climbed: [], now: null, found: null }); }

  connectedCallback() {
    const ticks = [0, 0.01, 0.05, 0.25, 0.5, 1].map((y) => draw("text", { x: LEFT - 6, y: up(y) + 3.5, "text-anchor": "end" }, document.createTextNode(String(y))));
    const marks = [0, 0.2, 0.4, 0.6].map((x) => draw("text", { x: across(x), y: TALL - BOTTOM + 14, "text-anchor": "middle" }, document.createTextNode(String(x))));
    this.band = draw("rect", { class: "band", x: LEFT, width: WIDE - LEFT - RIGHT });
    this.edge = draw("line", { class: "edge", x1: LEFT, x2: WIDE - RIGHT });
    this.marks = draw("g");
    this.svg = draw("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": "Weights against prediction" },
      this.band, this.edge,
      draw("path", { class: "axes", d: `M${LEFT} ${TOP}V${TALL - BOTTOM}H${WIDE - RIGHT}` }), ...ticks, ...marks,
      draw("text", { class: "title", x: (LEFT + WIDE - RIGHT) / 2, y: TALL - 4, "text-anchor": "middle" }, document.createTextNode("JSD of the weights →")),
      draw("text", { class: "title", x: 0, y: 0, transform: `translate(10 ${(TOP + TALL - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, document.createTextNode("TVD of the prediction →")),
      this.marks);
    this.replaceChildren(this.svg);
    this.show();
  }

  /** One more thing that was tried, by a person or by the search. @param {{jsd: number|null, tvd: number}} at @param {boolean} mine */
  add({ jsd, tvd }, mine) {
    this.now = jsd === null ? null : { jsd, tvd, mine };
    if (this.now) this.trail = [...this.trail.slice(-400), this.now];
    this.show();
  }

  /** How far a person got: the largest JSD within ε. */
  get best() { return Math.max(0, ...this.trail.filter(({ tvd, mine }) => mine && tvd <= this.epsilon).map(({ jsd }) => jsd)); }

  show() {
    if (!this.svg) return;
    const y = up(this.epsilon), floor = TALL - BOTTOM;
    this.band.setAttribute("y", String(y));
    this.band.setAttribute("height", String(floor - y));
    this.edge.setAttribute("y1", String(y));
    this.edge.setAttribute("y2", String(y));
    const dot = (kind, r) => ({ jsd, tvd }) => draw("circle", { class: kind, cx: across(jsd), cy: up(tvd), r });
    const line = (kind, points) => points.length > 1
      ? [draw("polyline", { class: kind, points: points.map(({ jsd, tvd }) => `${across(jsd)},${up(tvd)}`).join(" ") })] : [];
    const found = this.found && draw("path", { class: "found", d: `M${across(this.found.jsd)} ${up(this.found.tvd) - 6}l6 6l-6 6l-6 -6z` });
    this.marks.replaceChildren(
      ...this.drawn.map(dot("drawn", 2)), ...line("climb", this.climbed), ...line("trail", this.trail),
      ...this.trail.map(dot("tried", 2)), ...(found ? [found] : []), ...(this.now ? [dot("now", 5)(this.now)] : []));
    const here = this.now ? `JSD ${number(this.now.jsd)}, TVD ${number(this.now.tvd)}` : "no point: the weights have another sum";
    this.svg.setAttribute("aria-label", `Weights against prediction: ${here}; ${this.trail.length} tried, ${this.drawn.length} permutations`);
  }
}

customElements.define("exegete-plane", Plane);
