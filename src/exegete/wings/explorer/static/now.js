// <exegete-now>: what the model predicts now, large and always in view, and in one sentence what the weights in hand did.

import { classed, make, number } from "./dom.js";

const TERMS = {
  TVD: "Total variation distance: half the sum of all changes of the classes’ probabilities. 0: the same prediction. 1: nothing of it is left.",
  JSD: "Jensen–Shannon divergence of your weights and the model’s own. 0: the same weights. 0.69 (ln 2): none in common.",
};

/** A word that says what it means when somebody points to it or reaches it by key. @param {keyof TERMS} word */
export const term = (word) => make("span", { className: "term", tabIndex: 0 }, word, make("span", { className: "meaning", role: "tooltip" }, TERMS[word]));

export class Now extends HTMLElement {
  connectedCallback() {
    if (this.label) return;
    this.label = make("strong", { className: "now-label" });
    this.value = make("span", { className: "now-value" });
    this.flip = make("span", { className: "now-flip", hidden: true });
    this.sentence = make("span", { className: "now-sentence" });
    this.replaceChildren(make("span", { className: "now-prediction" }, this.label, " ", this.value, this.flip), this.sentence);
  }

  /**
   * @param {{own: Record<string, number>, was: string, result: any, edited: boolean, shuffled: number|null}} state
   * `was` is the class that the model predicts by its own weights, `shuffled` the median TVD of shuffled weights.
   */
  show({ own, was, result, edited, shuffled }) {
    const { prediction, probabilities, tvd, flipped } = result;
    this.label.textContent = classed(prediction);
    this.value.textContent = edited ? `${number(own[prediction], 2)} → ${number(probabilities[prediction], 2)}` : number(probabilities[prediction], 2);
    if (flipped && !this.flipped) {
      this.classList.remove("flash");
      void this.offsetWidth; // so that it flashes anew
      this.classList.add("flash");
    }
    this.flipped = flipped;
    this.classList.toggle("flipped", flipped);
    this.flip.hidden = !flipped;
    this.flip.textContent = "flipped";
    const beside = shuffled === null ? "" : `, shuffled ones by ${number(shuffled, 2)} (the median of 100 shuffles)`;
    this.sentence.textContent = !edited ? "by the model’s own weights. Drag a bar, and see whether it follows."
      : `${flipped ? `It was ${classed(was)}. ` : ""}Your weights change it by ${number(tvd, 2)}${beside}.`;
  }
}

customElements.define("exegete-now", Now);
