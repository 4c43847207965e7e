// <exegete-output>: what a translator writes, word by word; each can be chosen as what is explained.

import { classed, make } from "./dom.js";

export class Output extends HTMLElement {
  /** @param {string[]} pieces in the order in which they were written @param {number} step the chosen one, counted from 1 */
  open(pieces, step) {
    Object.assign(this, { pieces, step });
    const words = pieces.map((piece, i) => make("button", {
      type: "button", className: piece.startsWith("▁") || piece === "</s>" || i === 0 ? "piece" : "piece inside", "aria-pressed": String(i + 1 === step),
      onclick: () => this.choose(i + 1),
    }, classed(piece)));
    this.replaceChildren(make("h3", {}, "What it writes"),
      make("div", { className: "pieces", role: "group", "aria-label": "Output words: choose one to explain" }, ...words),
      make("p", { className: "small" }, "Everything below is about the word that you choose: given the source and what was written before it, why this one?"));
  }

  choose(step) {
    this.step = step;
    [...this.querySelectorAll("button")].forEach((button, i) => button.setAttribute("aria-pressed", String(i + 1 === step)));
    this.dispatchEvent(new CustomEvent("chosen", { detail: step }));
  }
}

customElements.define("exegete-output", Output);
