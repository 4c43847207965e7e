// The search for an adversary, as it climbs, and whether a person got further.

import { follow } from "./api.js";
import { number, say } from "./dom.js";

export class Search {
  /** @param {any} model the element whose weights are searched */
  constructor(model) { Object.assign(this, { model, best: null, rows: null }); }

  get epsilon() { return Number(this.model.parts.epsilon.value); }

  stop() {
    this.going?.abort();
    this.best = null;
    if (this.model.parts) this.model.parts.adversary.textContent = "Find an adversary";
  }

  /** Start, or stop what goes on. */
  async start() {
    const { model } = this, { plane, adversary } = model.parts;
    if (adversary.textContent === "Stop") { this.stop(); model.drawn(); return; }
    this.going = new AbortController();
    const { signal } = this.going;
    Object.assign(plane, { climbed: [], found: null });
    adversary.textContent = "Stop";
    model.parts.steps.textContent = "Searching…";
    try {
      const found = await follow("adversary", { ...model.asked, epsilon: this.epsilon }, (said) => this.look(said), signal);
      this.look(found);
      if (found.met) this.rows = model.put(found.rows.map((weights, row) => [row, weights]));
      say(found.met ? `Adversary found: JSD ${number(found.jsd)}, TVD ${number(found.tvd)}` : "No adversary within ε was found");
    } catch (error) {
      if (!signal.aborted) model.trouble(error.message);
    }
    adversary.textContent = "Find an adversary";
    model.effect();
  }

  /** The best so far, on the bars and in the plane. */
  look(said) {
    const { plane, bars, steps } = this.model.parts;
    this.best = said.met ? said.jsd : null;
    const middle = said.candidates.reduce(([jsd, tvd], [j, t]) => [jsd + j / said.candidates.length, tvd + t / said.candidates.length], [0, 0]);
    plane.climbed = [...plane.climbed, { jsd: middle[0], tvd: middle[1] }];
    plane.found = said.met ? { jsd: said.jsd, tvd: said.tvd } : null;
    plane.show();
    if (said.met) bars.show(said.rows[this.model.row]);
    steps.textContent = `Step ${said.step} of ${said.steps}: ${said.met ? `JSD ${number(said.jsd)} within ε` : "nothing within ε yet"}.`;
    this.model.parts.game.textContent = this.score();
  }

  /** Beat the search: how far each got with the prediction within ε. */
  score() {
    const { plane } = this.model.parts, mine = plane.best;
    const theirs = this.best === null ? "not searched yet" : number(this.best);
    const won = this.best !== null && mine > this.best + 5e-4 ? " You beat the search." : "";
    return `Largest JSD with TVD ≤ ${this.epsilon}: you ${number(mine)}, the search ${theirs}.${won}`;
  }
}
