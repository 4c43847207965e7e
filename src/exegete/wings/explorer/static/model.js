// <exegete-model>: one model with the text: its prediction, its attention in hand, and what every method says.

import { ask, latest, newest } from "./api.js";
import { Search } from "./search.js";
import { History, listed, rounded, sum } from "./edits.js";
import { classed, make, note, number, say, unnoted } from "./dom.js";
import { layout } from "./layout.js";
import { take } from "./take.js";

export class Model extends HTMLElement {
  constructor() {
    super();
    this.history = new History();
    this.chosen = { site: null, head: 0, query: 0 }; // what is shown
    this.wanted = this.chosen; // what is to be opened
    this.at = 1; // the word of a translator's output that is explained
    this.second = null;
    this.draws = 0;
    this.search = new Search(this);
    this.reading = latest((signal) => this.begun(signal));
    this.opening = latest((signal) => this.open(signal));
    this.weighing = newest(() => this.weigh());
    this.comparing = newest(() => this.compareShuffled());
  }

  /** How far it is, or what it is; whether it became ready by this. @param {any} about */
  tell(about) {
    const other = this.about?.state !== about.state;
    this.about = about;
    if (other) this.parts = layout(this);
    const { state, bench, title } = this.parts;
    title.textContent = about.name;
    state.hidden = about.state === "ready";
    bench.hidden = about.state !== "ready";
    this.parts.said.textContent = about.said;
    this.parts.bar.hidden = !about.total || about.state === "failed";
    Object.assign(this.parts.bar, { max: about.total || 1, value: about.done });
    state.classList.toggle("wrong", about.state === "failed");
    this.parts.heat.about = about;
    if (this.parts.heat.body) this.parts.heat.costs();
    return other && about.state === "ready";
  }

  /** Another text; edits of the one before are gone, unless an address brings its own. */
  read(text, restored = null) {
    this.text = this.about.writes ? { ...text, step: this.at } : text;
    this.restored = restored ?? { rows: new Map() };
    this.wanted = restored?.site ? { site: restored.site, head: 0, query: 0 } : { ...this.chosen };
    this.search.stop();
    this.parts.knockout.clear();
    this.classList.add("stale");
    this.reading();
  }

  /** Ask for everything; of a translator first what it writes, as there may be no such word any more. */
  async begun(signal) {
    if (this.about.writes) {
      try {
        const { pieces } = await ask("write", { model: this.about.model, ...this.text }, signal);
        this.at = Math.max(1, Math.min(this.at, pieces.length));
        this.text = { ...this.text, step: this.at };
        this.parts.output.open(pieces, this.at);
      } catch (error) {
        if (!signal.aborted) this.trouble(error.message);
        return;
      }
    }
    this.opening();
    this.parts.heat.open(this.about, this.text);
  }

  /** Another word of the output. @param {number} step */
  step(step) {
    this.at = step;
    this.read({ ...this.text, step });
    this.dispatchEvent(new Event("changed", { bubbles: true }));
  }

  /** A text to set beside this one, or none. @param {string|null} second */
  compare(second) {
    this.second = second;
    if (this.parts?.heat.body) this.parts.diff.open(this, second);
  }

  /** Whatever the heat maps are asked, the two texts are asked, too. */
  changedQuestion() {
    this.parts.diff.open(this, this.second);
    this.dispatchEvent(new Event("changed", { bubbles: true }));
  }

  get asked() { return { model: this.about.model, ...this.text, site: this.chosen.site }; }
  get row() { return this.chosen.head * this.opened.queries.length + this.chosen.query; }
  get rows() { return this.history.rows; }
  weights(row) { return this.rows.get(row) ?? this.opened.rows[row]; }

  /** Open what is wanted. Where that can't be, the readout is shown, and a note says why; where nothing can, there is no weight to take in hand. */
  async open(signal) {
    const asked = { ...this.asked, site: this.wanted.site };
    let opened = null, trouble = "";
    try { opened = await ask("open", asked, signal); } catch (error) { trouble = error.message; }
    if (!opened && asked.site && !signal.aborted) opened = await ask("open", { ...asked, site: null }, signal).catch(() => null);
    if (signal.aborted) return; // a newer one is on its way
    this.classList.remove("stale");
    this.parts.hand.hidden = this.parts.effect.hidden = this.parts.now.hidden = !opened;
    this.trouble(opened ? "" : trouble);
    if (!opened) return;
    if (trouble) {
      note(`${trouble[0].toUpperCase()}${trouble.slice(1)}. Site ${opened.site} is shown instead.`);
      this.restored = { rows: new Map() }; // of another site
    }
    this.take(opened);
    await this.layers(signal);
  }

  /** What was opened; an address's rows fit, or they are let go. */
  take(opened) {
    const { plane, prediction } = this.parts;
    this.opened = opened;
    this.parts.grid.sites = null; // those of the text before
    this.chosen = { site: opened.site, head: Math.min(this.wanted.head, opened.heads - 1), query: Math.min(this.wanted.query, opened.queries.length - 1) };
    this.parts.site.value = opened.site;
    this.history.clear();
    const fits = [...this.restored.rows].filter(([row, weights]) => row < opened.rows.length && weights.length === opened.keys.length);
    if (fits.length) this.history.push(new Map(fits));
    if (fits.length < this.restored.rows.size) note("This address brings weights that don’t fit this text: they are left out.");
    this.restored = { rows: new Map() };
    this.draws = 0;
    plane.clear();
    for (const bars of [prediction, this.parts.held]) bars.open(Object.keys(opened.probabilities));
    this.result = { probabilities: opened.probabilities, tvd: 0, jsd: 0, flipped: false, prediction: opened.prediction, frozen: null };
    this.shuffled = null;
    this.drawn();
    this.weighing();
  }

  /** All layers and heads, where words look at words somewhere; a text too long for matrices has its readout alone. */
  async layers(signal) {
    const { grid, where } = this.parts, asked = this.asked;
    where.hidden = this.about.sites.length < 2;
    this.parts.scope.hidden = this.opened.rows.length < 2;
    const found = await Promise.allSettled(this.about.sites.map((site) => (site === asked.site ? this.opened : ask("open", { ...asked, site }, signal))));
    if (signal.aborted || asked.site !== this.chosen.site) return;
    const sites = Object.fromEntries(found.flatMap(({ value }) => (value ? [[value.site, value]] : [])));
    const layer = Object.values(sites).find(({ queries }) => queries.length > 1);
    grid.hidden = !layer;
    this.parts.sinks.hidden = this.opened.queries.length < 2;
    this.parts.knockout.hidden = !layer || !this.about.layers;
    if (!layer) return;
    if (this.about.layers) this.parts.knockout.open(this, layer.keys, layer.movable);
    grid.open(sites, this.chosen, (site, head) => {
      const { rows, queries } = sites[site], from = head * queries.length;
      return queries.map((_, query) => (site === this.chosen.site ? this.weights(from + query) : rows[from + query]));
    });
  }

  choose(chosen) {
    this.wanted = chosen;
    unnoted();
    if (chosen.site !== this.chosen.site || this.classList.contains("stale")) {
      this.search.stop();
      this.classList.add("stale"); // until it is opened, what is shown is the one before
      this.opening();
      return;
    }
    this.chosen = chosen;
    this.drawn();
    this.parts.grid.chosen = chosen;
    this.parts.grid.show();
  }

  /** A row in hand. @param {number[]} weights */
  hold(weights) {
    this.history.replace(new Map(this.rows).set(this.row, weights));
    this.changed();
  }

  /** The beginning of an edit, which can be undone as one. */
  begin() { this.history.push(new Map(this.rows)); }

  changed() {
    this.drawn();
    this.weighing();
    this.dispatchEvent(new Event("changed", { bubbles: true }));
  }

  /** Rows that an intervention leaves. @param {object} how */
  async rewrite(how) {
    try {
      const rows = how.how === "permute" ? [] : listed(this.rows);
      const found = await ask("rewrite", { ...this.asked, ...how, rows, over: this.scope() });
      this.put(found.rows.map(({ row, weights }) => [row, weights]));
    } catch (error) { this.trouble(error.message); }
  }

  /** Rows from elsewhere, as one edit; those that are the model's own are no edits. */
  put(rows) {
    const next = new Map(this.rows);
    for (const [row, weights] of rows) {
      const same = weights.every((weight, key) => Math.abs(weight - this.opened.rows[row][key]) < 1e-9);
      if (same) next.delete(row); else next.set(row, weights.map(rounded));
    }
    this.history.push(next);
    this.changed();
    return next;
  }

  /** The rows that a button is about: this one, its head's, or all. */
  scope() {
    const { head } = this.chosen, many = this.opened.queries.length, kind = this.parts.scope.hidden ? "all" : this.parts.over.value;
    if (kind === "row") return [this.row];
    return kind === "head" ? Array.from({ length: many }, (_, query) => head * many + query) : null;
  }

  async permute() {
    const { plane, outcomes } = this.parts;
    try {
      const found = await ask("permute", this.asked);
      this.shuffled = found.median;
      plane.drawn = found.tvd.map((tvd, i) => ({ tvd, jsd: found.jsd[i] }));
      plane.show();
      const flips = found.flipped.filter(Boolean).length;
      outcomes.textContent = `${found.tvd.length} permutations of the model’s own weights: median TVD ${number(found.median)}, ${flips} flip the decision.`;
      this.effect();
      say(outcomes.textContent);
    } catch (error) { this.trouble(error.message); }
  }

  /** How much shuffled weights change the prediction: what an edit is seen beside. Where a weighting is a whole pass, on demand alone. */
  async compareShuffled() {
    if (this.shuffled !== null) return;
    const { opened } = this, asked = this.asked;
    const found = await ask("permute", asked).catch(() => null);
    if (!found || opened !== this.opened) return;
    this.shuffled = found.median;
    this.effect();
  }

  async weigh() {
    const rows = this.rows, asked = { ...this.asked, rows: listed(rows) };
    try {
      const found = await ask("weigh", asked);
      if (rows !== this.rows || asked.text !== this.text.text || asked.site !== this.chosen.site) return;
      this.result = found;
      if (rows.size && this.shuffled === null && this.opened.pools) this.comparing();
      this.parts.plane.add(found, rows !== this.search.rows);
      this.effect();
      this.trouble("");
      this.dataset.weighed = String(Number(this.dataset.weighed ?? 0) + 1);
    } catch (error) { this.trouble(error.message); }
  }

  /** What is in hand, as it is now. */
  drawn() {
    const { bars, undo, redo, reset, rowName } = this.parts, { queries, heads } = this.opened;
    bars.open(this.opened.keys, this.opened.rows[this.row]);
    bars.show(this.weights(this.row));
    undo.disabled = !this.history.undoable;
    redo.disabled = !this.history.redoable;
    reset.disabled = this.rows.size === 0;
    rowName.textContent = queries.length > 1 ? `“${queries[this.chosen.query]}” looks, head ${this.chosen.head + 1} of ${this.chosen.site}` : heads > 1 ? `Head ${this.chosen.head + 1}` : "";
    rowName.hidden = !rowName.textContent;
    this.parts.grid.show();
    this.effect();
  }

  /** What it does. */
  effect() {
    const { prediction, numbers, game, frozen } = this.parts, own = this.opened.probabilities, now = this.result;
    prediction.show(own, now.probabilities);
    this.parts.now.show({ own, was: this.opened.prediction, result: now, edited: this.rows.size > 0, shuffled: this.shuffled });
    const off = Math.abs(sum(this.weights(this.row)) - sum(this.opened.rows[this.row])) > 1e-6;
    numbers.tvd.textContent = number(now.tvd);
    numbers.jsd.textContent = now.jsd === null ? (off ? "– (another sum)" : "–") : number(now.jsd);
    numbers.decision.textContent = now.flipped ? `flipped to ${classed(now.prediction)}` : "the same";
    numbers.decision.classList.toggle("flipped", now.flipped);
    frozen.hidden = !now.frozen;
    if (now.frozen) this.parts.held.show(own, now.frozen);
    game.textContent = this.search.score();
    if (this.rows.size) say(`${classed(now.prediction)} ${number(now.probabilities[now.prediction])}, TVD ${number(now.tvd)}, JSD ${number(now.jsd)}${now.flipped ? ", flipped" : ""}`);
  }

  undo() { this.history.undo(); this.changed(); }
  redo() { this.history.redo(); this.changed(); }
  reset() { this.history.push(new Map()); this.changed(); }
  takeAway(what) { return take(this, what); }

  trouble(sentence) {
    this.parts.trouble.textContent = sentence;
    this.parts.trouble.hidden = !sentence;
  }
}

customElements.define("exegete-model", Model);
