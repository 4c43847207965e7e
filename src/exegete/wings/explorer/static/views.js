// Views: the text, and, where a run is among the models, its data and its scorecard.

import "./data.js";
import "./scorecard.js";

const NAMES = ["text", "data", "scorecard"];

export class Views {
  /** @param {() => void} changed hears when another view is shown */
  constructor(changed) {
    this.changed = changed;
    this.now = "text";
    this.bar = document.getElementById("views");
    this.data = /** @type {any} */ (document.querySelector("exegete-data"));
    this.card = /** @type {any} */ (document.querySelector("exegete-scorecard"));
    for (const button of this.bar.querySelectorAll("button")) button.addEventListener("click", () => { this.show(button.dataset.view); this.changed(); });
  }

  /** @param {any[]} abouts all models @param {URLSearchParams} from */
  open(abouts, from) {
    this.bar.hidden = false;
    this.runs(abouts);
    this.restore(from);
  }

  /** What has texts, and what a scorecard, or none yet. @param {any[]} abouts */
  runs(abouts) {
    const runs = abouts.filter(({ run }) => run);
    this.bar.querySelector("[data-view=data]").hidden = !runs.length;
    if (runs.length) this.data.open(runs);
    this.card.open(abouts);
  }

  /** @param {URLSearchParams} from */
  restore(from) {
    this.data.restore(from);
    const named = from.get("view") ?? "text", button = this.bar.querySelector(`[data-view="${CSS.escape(named)}"]`);
    this.show(!this.bar.hidden && button && !button.hidden ? named : "text");
  }

  /** @param {string} view */
  show(view) {
    this.now = view;
    for (const name of NAMES) document.getElementById(`view-${name}`).hidden = name !== view;
    for (const button of this.bar.querySelectorAll("button")) {
      if (button.dataset.view === view) button.setAttribute("aria-current", "page"); else button.removeAttribute("aria-current");
    }
    if (view === "data") this.data.show();
    if (view === "scorecard") this.card.show();
  }

  /** @returns {[string, string][]} what an address must say */
  get state() { return this.now === "text" ? [] : [["view", this.now], ...(this.now === "data" ? this.data.state : [])]; }
}

