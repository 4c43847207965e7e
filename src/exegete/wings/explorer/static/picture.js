// A picture of a model's panel: the weights over the words, the prediction before and after, and the plane.

import { classed, draw, number } from "./dom.js";
import { ink, standalone } from "./save.js";

const WIDE = 840, EDGE = 24, BAR = 90, LETTER = 8.5, LINE = 150, CLASS = 26;

/** @param {any} model @returns {SVGSVGElement} */
export function pictured(model) {
  const colours = Object.fromEntries(["ink", "muted", "paper", "wash", "size", "against", "for"].map((name) => [name, ink(name)]));
  const said = (x, y, text, given = {}) => draw("text", { x, y, fill: colours.ink, ...given }, document.createTextNode(text));
  const parts = [said(EDGE, 34, model.about.name, { "font-weight": 600 }), said(EDGE, 54, model.parts.rowName.textContent, { fill: colours.muted })];
  const own = model.opened.rows[model.row], now = model.weights(model.row), most = Math.max(...own, ...now, 1e-9);
  let x = EDGE, top = 84;
  model.opened.keys.forEach((word, i) => {
    const wide = Math.max(46, word.length * LETTER + 12), moved = Math.abs(now[i] - own[i]) > 1e-9;
    if (x + wide > WIDE - EDGE) { x = EDGE; top += LINE; }
    const middle = x + wide / 2, tall = (BAR * now[i]) / most, line = top + BAR - (BAR * own[i]) / most;
    parts.push(draw("rect", { x: middle - 16, y: top, width: 32, height: BAR, fill: colours.wash }),
      draw("rect", { x: middle - 16, y: top + BAR - tall, width: 32, height: tall, fill: moved ? colours.against : colours.size }),
      said(middle, top - 5, number(now[i]), { "text-anchor": "middle", "font-size": 11, fill: colours.muted }),
      said(middle, top + BAR + 18, word, { "text-anchor": "middle" }));
    if (moved) parts.push(draw("line", { x1: middle - 16, x2: middle + 16, y1: line, y2: line, stroke: colours.ink, "stroke-width": 2 }));
    x += wide;
  });
  top += LINE;
  const half = WIDE / 2 - 20;
  Object.entries(model.result.probabilities).forEach(([label, p], i) => {
    const y = top + i * CLASS, before = model.opened.probabilities[label], room = half - 240;
    parts.push(said(EDGE, y + 13, classed(label)), draw("rect", { x: 130, y: y + 2, width: room, height: 14, fill: colours.wash }),
      draw("rect", { x: 130, y: y + 2, width: room * p, height: 14, fill: colours.for }),
      draw("rect", { x: 130 + room * before - 1, y: y - 1, width: 2, height: 20, fill: colours.ink }),
      said(half, y + 13, `${number(before)} → ${number(p)}`, { "text-anchor": "end" }));
  });
  const below = top + Object.keys(model.result.probabilities).length * CLASS + 20;
  parts.push(said(EDGE, below, `TVD of the prediction ${number(model.result.tvd)}, JSD of the weights ${number(model.result.jsd)}`),
    said(EDGE, below + 20, model.result.flipped ? `flipped to ${classed(model.result.prediction)}` : "the decision is the same"));
  const plane = standalone(model.parts.plane.svg), { width, height } = model.parts.plane.svg.viewBox.baseVal;
  const size = { x: half + 40, y: top - 10, width: half - EDGE, height: ((half - EDGE) * height) / width };
  for (const [name, value] of Object.entries(size)) plane.setAttribute(name, String(value));
  const tall = Math.max(below + 20, size.y + size.height) + EDGE;
  return /** @type {any} */ (draw("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${WIDE} ${tall}`, width: WIDE, height: tall, "font-family": "Arial, sans-serif", "font-size": 13 },
    draw("title", {}, document.createTextNode(model.text.text)), draw("rect", { width: WIDE, height: tall, fill: colours.paper }), ...parts, plane));
}
