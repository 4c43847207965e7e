// <exegete-prediction>: probabilities before and after, as bars by class.

import { classed, make, number } from "./dom.js";

export class Prediction extends HTMLElement {
  /** @param {string[]} labels */
  open(labels) {
    if (this.labels?.join("\n") === labels.join("\n")) return;
    this.labels = labels;
    this.lines = labels.map((label) => {
      const fill = make("div", { className: "fill" }), mark = make("div", { className: "own" });
      const value = make("span", { className: "value" });
      const line = make("div", { className: "class" }, make("span", { className: "label" }, classed(label)),
        make("div", { className: "track", "aria-hidden": "true" }, fill, mark), value);
      return { line, fill, mark, value };
    });
    this.replaceChildren(...this.lines.map(({ line }) => line));
  }

  /** @param {Record<string, number>} own @param {Record<string, number>} now */
  show(own, now) {
    const first = Math.max(...Object.values(now));
    this.labels.forEach((label, i) => {
      const { line, fill, mark, value } = this.lines[i];
      fill.style.width = `${100 * now[label]}%`;
      mark.style.left = `${100 * own[label]}%`;
      line.classList.toggle("first", now[label] === first);
      value.textContent = `${number(own[label])} → ${number(now[label])}`;
      value.dataset.value = String(now[label]);
    });
  }
}

customElements.define("exegete-prediction", Prediction);
