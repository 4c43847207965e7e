// <exegete-knockout>: a word that nobody looks at any more, or one alone, in a window of layers; all else is the model's own.

import { ask, newest } from "./api.js";
import { classed, fresh, make, number, say } from "./dom.js";

const NONE = "";

export class Knockout extends HTMLElement {
  constructor() {
    super();
    this.asking = newest(() => this.ask());
  }

  /** @param {any} model the element whose text it is @param {string[]} keys as a layer has them @param {boolean[]} movable which of them are words */
  open(model, keys, movable) {
    this.model = model;
    if (!this.parts) this.build();
    const { word, by, first, last } = this.parts, { layers } = model.about;
    const wanted = this.wanted ?? this.state, option = (value, said) => make("option", { value: String(value) }, said);
    const listed = keys.map((key, i) => option(i, `${i + 1}. ${key}`));
    word.replaceChildren(option(NONE, "no word"), ...listed.filter((_, i) => movable[i]));
    by.replaceChildren(option(NONE, "everybody"), ...listed.map((each) => each.cloneNode(true)));
    for (const end of [first, last]) if (end.childElementCount !== layers) end.replaceChildren(...Array.from({ length: layers }, (_, i) => option(i, String(i))));
    this.set(wanted ?? { word: NONE, by: NONE, first: "0", last: String(layers - 1) });
    this.wanted = null;
    this.asking();
  }

  build() {
    const choice = (name, said) => {
      const id = fresh("choice"), select = make("select", { id, onchange: () => this.changed() });
      return [name, select, make("div", { className: "choice" }, make("label", { htmlFor: id }, said), select)];
    };
    const choices = [choice("word", "Nobody may look at"), choice("by", "whose look"), choice("first", "from layer"), choice("last", "to")];
    this.parts = Object.fromEntries(choices.map(([name, select]) => [name, select]));
    this.said = make("p", { className: "small cut-said", role: "status" });
    this.replaceChildren(make("h4", {}, "Knock a word out"), make("div", { className: "choices" }, ...choices.map(([, , box]) => box)), this.said);
  }

  /** What is chosen, or null: nothing is cut. */
  get state() {
    if (!this.parts?.word.value) return null;
    return Object.fromEntries(Object.entries(this.parts).map(([name, { value }]) => [name, value]));
  }

  /** Another text has other words. */
  clear() { if (this.parts) this.parts.word.value = NONE; }

  /** What an address says: word, by, first, last. @param {string|null} said */
  restore(said) { const parts = (said ?? "").split(","); this.wanted = parts.length === 4 ? Object.fromEntries(["word", "by", "first", "last"].map((name, i) => [name, parts[i]])) : null; }
  get written() { const now = this.state; return now && ["word", "by", "first", "last"].map((name) => now[name]).join(","); }

  set(wanted) {
    for (const [name, select] of Object.entries(this.parts)) {
      select.value = wanted[name];
      if (select.selectedIndex < 0) select.selectedIndex = name === "last" ? select.options.length - 1 : 0;
    }
  }

  changed() {
    const { first, last } = this.parts;
    if (Number(first.value) > Number(last.value)) last.value = first.value;
    this.asking();
    this.dispatchEvent(new Event("changed", { bubbles: true }));
  }

  async ask() {
    const now = this.state, { model } = this;
    this.found = null;
    if (!now) { this.said.textContent = "The edges to a word are cut in a window of layers; what is left is projected again."; return; }
    const asked = { model: model.about.model, ...model.text, word: Number(now.word), by: now.by === NONE ? null : Number(now.by), first: Number(now.first), last: Number(now.last) };
    try {
      const found = await ask("cut", asked);
      this.found = { asked: now, ...found };
      this.said.textContent = `${Object.entries(found.probabilities).map(([label, p]) => `${classed(label)} ${number(p)}`).join(", ")}; TVD ${number(found.tvd)}, the decision ${found.flipped ? `flips to ${classed(found.prediction)}` : "is the same"}.`;
      say(this.said.textContent);
    } catch (error) { this.said.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`; }
  }
}

customElements.define("exegete-knockout", Knockout);
