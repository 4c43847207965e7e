// <exegete-diff>: two texts side by side: words matched, both predictions, every method's heat maps, what was gained or lost.

import { ask, follow, latest } from "./api.js";
import { make, say } from "./dom.js";
import { quoted, shell, sourced } from "./quote.js";
import { copy } from "./take.js";
import { saveJson, savePage } from "./save.js";
import "./prediction.js";

export class Diff extends HTMLElement {
  constructor() {
    super();
    this.asked = latest((signal) => this.load(signal));
  }

  /** @param {any} model the panel @param {string|null} second the other text; null: there is none */
  open(model, second) {
    this.model = model;
    this.hidden = !second?.trim();
    if (this.hidden) { this.found = null; this.asked.stop(); return; }
    if (!this.body) this.build();
    this.second = second;
    this.asked();
  }

  build() {
    const button = (said, work) => make("button", { type: "button", onclick: work }, said);
    this.state = make("p", { className: "wrong", hidden: true, role: "alert" });
    this.prediction = make("exegete-prediction");
    this.body = make("div", { className: "heat-body short" });
    this.replaceChildren(make("h3", {}, "What the second text changes"), this.state, this.prediction, this.body,
      make("div", { className: "buttons take", role: "group", "aria-label": "Take the two texts away" },
        button("Copy Python", () => copy(this.python())), button("Copy command", () => copy(this.command())),
        button("Save JSON", () => saveJson("exegete-two-texts", this.found)),
        button("Save HTML", () => savePage("exegete-two-texts", "Two texts, explained", this, this.found))));
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { heat } = this.model.parts, asked = { ...heat.question, second: this.second };
    this.classList.add("stale");
    try {
      const found = heat.extra.size ? await follow("differ", asked, () => {}, signal) : await ask("differ", asked, signal);
      this.found = found.difference;
      this.body.innerHTML = found.html; // our own template, escaped on the server
      const title = this.body.querySelector("h2");
      title.replaceWith(make("p", { className: "heat-title" }, title.textContent));
      for (const part of this.body.querySelectorAll("[role=region]")) part.ariaLabel += `, model ${this.model.about.model + 1}`;
      this.predictions(found.difference);
      this.state.hidden = true;
      say(title.textContent);
    } catch (error) {
      if (signal.aborted) return; // a newer one is on its way, or there is no second text any more
      this.state.textContent = error.message;
      this.state.hidden = false;
    }
    this.classList.remove("stale");
  }

  /** Of classes; a translator's likeliest words are others in another text. @param {any} found */
  predictions({ first, second }) {
    this.prediction.hidden = this.model.about.writes;
    if (this.prediction.hidden) return;
    this.prediction.open(Object.keys(first.probabilities));
    this.prediction.show(first.probabilities, second.probabilities);
  }

  command() {
    const { heat } = this.model.parts;
    return `exegete explain ${shell(heat.text.text)} --diff ${shell(this.second)}${heat.options} --json\n`;
  }

  python() {
    const { about, text, parts: { heat } } = this.model, { target, contrast, methods, step, question } = heat.question;
    const words = (written) => (question === null || question === undefined ? quoted(written) : `(${quoted(written)}, ${quoted(question)})`);
    const asked = `${quoted(methods)}, ${contrast ? `contrast=${quoted(contrast)}, ` : ""}${about.writes ? `step=${step}, ` : ""}`;
    return `import exegete as ex\n\nfirst = ex.explain(${sourced(about)}, ${words(text.text)}, ${asked}target=${target ? quoted(target) : "None"})\n`
      + `second = ex.explain(${sourced(about)}, ${words(this.second)}, ${asked}target=first.target)\nprint(first.difference(second).frame)\n`;
  }
}

customElements.define("exegete-diff", Diff);
