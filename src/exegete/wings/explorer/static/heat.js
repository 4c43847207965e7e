// <exegete-heat>: what every method says of the text. Cheap ones follow what is typed, dear ones come on request.

import { ask, follow, latest } from "./api.js";
import { classed, fresh, make, note, number, say } from "./dom.js";
import { shell } from "./quote.js";

export class Heat extends HTMLElement {
  constructor() {
    super();
    this.extra = new Set();
    this.asked = latest((signal) => this.load(signal));
  }

  /** @param {any} about the model @param {{text: string, question: string|null}} text */
  open(about, text) {
    if (!this.body) this.build(about);
    Object.assign(this, { about, text });
    this.costs();
    return this.asked();
  }

  build(about) {
    this.about = about;
    const choice = (name, options) => {
      const id = fresh("choice");
      const select = make("select", { id, onchange: () => this.asked() }, ...options.map(([value, said]) => make("option", { value }, said)));
      return [select, make("div", { className: "choice" }, make("label", { htmlFor: id }, name), select)];
    };
    const classes = about.labels.map((label) => [label, classed(label)]);
    const [target, first] = about.writes ? this.foil("Explain", "the chosen word") : choice("Explain", [["", "the predicted class"], ...classes]);
    const [contrast, second] = about.writes ? this.foil("set against", "no word") : choice("set against", [["", "nothing"], ...classes]);
    const units = about.writes ? ["word", "piece", "sentence"] : ["word", "sentence"];
    const [by, third] = choice("by", units.map((unit) => [unit, unit]));
    Object.assign(this, { target, contrast, by });
    this.restore(this.kept ?? "");
    this.dear = make("div", { className: "dear", role: "group", "aria-label": "More methods" });
    this.state = make("p", { className: "wrong", hidden: true, role: "alert" });
    this.body = make("div", { className: "heat-body" });
    this.replaceChildren(make("h3", {}, "What every method says"), make("div", { className: "choices" }, first, second, third),
      this.dear, this.state, this.body);
  }

  /** A word of the vocabulary, where there are too many to choose from. */
  foil(name, none) {
    const id = fresh("foil"), input = make("input", { id, type: "text", placeholder: none, maxLength: 100, autocomplete: "off", spellcheck: false, onchange: () => this.asked() });
    return [input, make("div", { className: "choice" }, make("label", { htmlFor: id }, name), input)];
  }

  /** What is asked for, as an address keeps it. */
  get written() {
    const now = new URLSearchParams(Object.entries({ target: this.target?.value, contrast: this.contrast?.value, by: this.by?.value, with: [...this.extra].join(" ") }).filter(([name, value]) => value && `${name} ${value}` !== "by word"));
    return String(now);
  }

  /** What an address asks for, as far as this model has it. @param {string} kept */
  restore(kept) {
    this.kept = kept;
    if (!this.by) return;
    const now = new URLSearchParams(kept), gone = [];
    for (const [name, usual] of [["target", ""], ["contrast", ""], ["by", "word"]]) {
      this[name].value = now.get(name) ?? usual;
      if (this[name].selectedIndex === -1) { gone.push(now.get(name)); this[name].value = usual; }
    }
    const dear = this.about.methods.filter(({ cheap }) => !cheap).map(({ name }) => name), named = (now.get("with") ?? "").split(" ").filter(Boolean);
    this.extra = new Set(named.filter((name) => dear.includes(name)));
    gone.push(...named.filter((name) => !dear.includes(name)));
    if (gone.length) note(`This address asks for ${gone.map((name) => `“${name.slice(0, 60)}”`).join(", ")}, which this model doesn’t offer: left out.`);
  }

  /** The same on the command line. */
  get options() {
    const { target, contrast, by, methods, question, step } = this.question, { source, writes } = this.about;
    const given = { model: source, question, with: methods.join(","), target, contrast, by: by === "word" ? null : by, step: writes ? String(step) : null };
    return Object.entries(given).filter(([, value]) => value).map(([name, value]) => ` --${name} ${shell(value)}`).join("");
  }

  get question() {
    const cheap = this.about.methods.filter((method) => method.cheap).map(({ name }) => name);
    return { model: this.about.model, ...this.text, methods: [...cheap, ...this.extra],
      target: this.target.value.trim() || null, contrast: this.contrast.value.trim() || null, by: this.by.value };
  }

  /** Buttons of dear methods, with what each takes: measured here on ten words, and scaled to this text's. */
  costs() {
    const words = Math.max(1, this.text.text.split(/\s+/).length);
    const dear = this.about.methods.filter(({ cheap }) => !cheap);
    if (this.dear.childElementCount !== dear.length) this.dear.replaceChildren(...dear.map(({ name }) => make("button", { type: "button", onclick: () => this.toggle(name) })));
    dear.forEach(({ name, label, milliseconds }, i) => {
      const cost = milliseconds === null ? "" : ` ≈ ${number((milliseconds * words) / 10, 0)} ms`;
      this.dear.children[i].textContent = `${this.extra.has(name) ? "−" : "+"} ${label}${this.extra.has(name) ? "" : cost}`;
      this.dear.children[i].setAttribute("aria-pressed", String(this.extra.has(name)));
    });
  }

  toggle(name) {
    if (!this.extra.delete(name)) this.extra.add(name);
    this.costs();
    return this.asked();
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    this.classList.add("stale");
    this.body.setAttribute("aria-busy", "true");
    const asked = this.question;
    this.dispatchEvent(new Event("asked", { bubbles: true }));
    try {
      const found = this.extra.size ? await follow("explain", asked, ({ said }) => { this.dear.title = said; }, signal) : await ask("explain", asked, signal);
      this.explanation = found.explanation;
      this.body.innerHTML = found.html; // our own template, escaped on the server; the policy lets no script in
      for (const part of this.body.querySelectorAll("h2")) part.replaceWith(make("p", { className: "heat-title" }, part.textContent));
      for (const part of this.body.querySelectorAll("[role=region]")) part.ariaLabel += `, model ${this.about.model + 1}`; // one of several
      this.state.hidden = true;
      say(found.explanation.reading?.sentences[0] ?? "");
    } catch (error) {
      if (signal.aborted) return; // a newer one is on its way
      this.state.textContent = error.message;
      this.state.hidden = false;
    }
    this.classList.remove("stale");
    this.body.removeAttribute("aria-busy");
  }
}

customElements.define("exegete-heat", Heat);
