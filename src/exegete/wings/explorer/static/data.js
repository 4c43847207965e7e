// <exegete-data>: the texts of a run, sorted by what is worth looking at, and the words of all of them.

import { ask, newest } from "./api.js";
import { classed, fresh, make, note, number, say, settled } from "./dom.js";
import { saveJson, savePage, savePng, saveSvg, standalone } from "./save.js";
import "./words.js";

const FIRST = { run: 0, cell: 0, sort: "tau", turned: false, search: "", only: "all", first: 0, order: "count", least: 5 };
const PAGE = 25, PAUSE = 200;
const SORTS = [["tau", "where attention and the best method disagree"], ["jsd", "where an adversary gets far"], ["confidence", "where the model is unsure"], ["error", "where it is wrong"], ["n", "long texts"]];
const SHOWS = [["all", "all texts"], ["wrong", "errors"], ["right", "right ones"]];
const ORDERS = [["count", "the most frequent"], ["loved", "attention likes them more"], ["needed", "the method likes them more"]];

const CHOICES = { sort: SORTS, only: SHOWS, order: ORDERS };
const HIGHEST = { cell: 9_999, first: 9_999_999, least: 999_999 };

export class Data extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */
    this.asked = { ...FIRST };
    this.reading = newest(() => this.read());
    this.wording = newest(() => this.word());
  }

  /** @param {any[]} runs the models that are runs */
  open(runs) {
    this.runs = runs;
    if (!runs.some(({ model }) => model === this.asked.run)) this.asked.run = runs[0].model;
  }

  /** What an address says; what it doesn't is as at first. @param {URLSearchParams} from */
  restore(from) {
    for (const [name, first] of Object.entries(FIRST)) {
      const said = from.get(`data.${name}`);
      this.asked[name] = said === null ? first : typeof first === "number" ? Number(said) || 0 : typeof first === "boolean" ? said === "true" : said;
    }
    for (const [name, options] of Object.entries(CHOICES)) if (!options.some(([value]) => value === this.asked[name])) this.unknown(name);
    for (const [name, most] of Object.entries(HIGHEST)) this.asked[name] = Math.min(most, Math.max(name === "least" ? 1 : 0, Math.round(this.asked[name])));
    this.asked.search = this.asked.search.slice(0, 200);
    if (this.runs && !this.runs.some(({ model }) => model === this.asked.run)) this.unknown("run");
    if (this.runs) this.open(this.runs);
  }

  /** An address names what is not there. @param {string} name of what is asked */
  unknown(name) {
    if (this.asked[name] !== FIRST[name]) note(`This address asks for the texts of ${name} “${String(this.asked[name]).slice(0, 60)}”, which is not there: left out.`);
    this.asked[name] = FIRST[name];
  }

  /** @returns {[string, string][]} what an address must say */
  get state() {
    return Object.entries(this.asked).filter(([name, value]) => value !== FIRST[name]).map(([name, value]) => [`data.${name}`, String(value)]);
  }

  async show() {
    if (!this.parts) this.build();
    this.fill();
    await this.whole();
  }

  /** The run, then its texts and words. */
  async whole() {
    const { trouble, cell } = this.parts;
    if (this.about?.run !== this.asked.run) {
      this.classList.add("stale");
      this.parts.count.textContent = "Reading the run…";
      try { this.about = await ask("run", { run: this.asked.run }); } catch (error) {
        this.trouble(error.message);
        return;
      }
      cell.replaceChildren(...this.about.cells.map((label, i) => make("option", { value: String(i) }, label)));
      cell.parentElement.hidden = this.about.cells.length < 2;
      trouble.hidden = true;
    }
    this.asked.cell = Math.min(this.asked.cell, this.about.cells.length - 1);
    this.fill();
    await Promise.all([this.reading(), this.wording()]);
  }

  build() {
    const choice = (name, options, work) => {
      const id = fresh("choice"), select = make("select", { id, onchange: work }, ...options.map(([value, said]) => make("option", { value }, said)));
      return [select, make("div", { className: "choice" }, make("label", { htmlFor: id }, name), select)];
    };
    const set = (name, work) => (/** @type {any} */ event) => { const { type, checked, value } = event.target; this.change({ [name]: type === "checkbox" ? checked : value }, work); };
    const [run, first] = choice("Run", this.runs.map(({ model, source }) => [String(model), source ?? "the default audit"]), (event) => this.change({ run: Number(event.target.value), cell: 0 }, () => this.whole()));
    const [cell, second] = choice("Model", [], (event) => this.change({ cell: Number(event.target.value) }, () => this.whole()));
    const [sort, third] = choice("First", SORTS, set("sort"));
    const [only, fourth] = choice("Show", SHOWS, set("only"));
    const [order, fifth] = choice("Words", ORDERS, set("order", () => this.wording()));
    const turned = make("input", { type: "checkbox", id: fresh("turned"), onchange: set("turned") });
    const search = make("input", { type: "search", id: fresh("search"), maxLength: 200, spellcheck: false, autocomplete: "off", oninput: settled(() => this.change({ search: search.value }), PAUSE) });
    const least = make("input", { type: "number", id: fresh("least"), min: "1", max: "999999", onchange: () => this.change({ least: Math.max(1, Number(least.value) || 1) }, () => this.wording()) });
    first.hidden = this.runs.length < 2;
    const button = (said, work) => make("button", { type: "button", onclick: work }, said);
    const parts = { run, cell, sort, only, order, turned, search, least };
    parts.trouble = make("p", { className: "wrong", role: "alert", hidden: true });
    parts.count = make("p", { className: "small count", role: "status" });
    parts.body = make("tbody");
    parts.head = make("tr");
    parts.back = button("Previous", () => this.change({ first: Math.max(0, this.asked.first - PAGE) }));
    parts.next = button("Next", () => this.change({ first: this.asked.first + PAGE }));
    parts.words = make("exegete-words", { onword: ({ detail }) => { search.value = detail; this.change({ search: detail }); search.scrollIntoView({ block: "center" }); say(`Texts with ${detail}`); } });
    parts.list = make("div", { className: "scroll", role: "region", "aria-label": "Words as a table", tabIndex: 0 });
    parts.wordless = make("p", { className: "small" });
    this.parts = parts;
    const labelled = (said, input) => make("div", { className: "choice" }, make("label", { htmlFor: input.id }, said), input);
    this.replaceChildren(parts.trouble,
      make("div", { className: "choices" }, first, second),
      make("div", { className: "choices" }, third, make("span", { className: "check" }, turned, make("label", { htmlFor: turned.id }, "the other way round")), fourth, labelled("with the words", search)),
      parts.count,
      make("div", { className: "scroll texts", role: "region", "aria-label": "Texts", tabIndex: 0 }, make("table", {}, make("thead", {}, parts.head), parts.body)),
      make("div", { className: "buttons pager", role: "group", "aria-label": "Pages" }, parts.back, parts.next),
      make("section", { className: "over-words" }, make("h2", {}, "Words over all texts"),
        make("p", { className: "small" }, "What attention loves and what the prediction needs (after Li et al. 2016): the mean importance of every word, 1 being an even share of its text. On the line both say the same.", make("span", { className: "hint" }, " Choose a word to see its texts.")),
        make("div", { className: "choices" }, fifth, labelled("that occur at least so often", least)), parts.wordless, parts.words,
        make("details", {}, make("summary", {}, "As a table"), parts.list)),
      make("div", { className: "buttons take", role: "group", "aria-label": "Take it away" },
        button("Save JSON", () => saveJson("exegete-data", this.found)), button("Save HTML", () => savePage("exegete-data", this.about.name, this, this.found)),
        button("Save SVG of the words", () => saveSvg("exegete-words", standalone(this.parts.words.svg))), button("Save PNG of the words", () => savePng("exegete-words", standalone(this.parts.words.svg)))));
  }

  /** What is chosen, as it is. */
  fill() {
    const { parts, asked } = this;
    for (const name of ["run", "cell", "sort", "only", "order", "search", "least"]) parts[name].value = String(asked[name]);
    parts.turned.checked = asked.turned;
  }

  change(changed, work = () => this.reading()) {
    Object.assign(this.asked, "first" in changed ? changed : { first: 0, ...changed });
    this.dispatchEvent(new Event("changed", { bubbles: true }));
    return work();
  }

  async read() {
    const { run, cell, sort, turned, search, only, first } = this.asked;
    this.classList.add("stale");
    try {
      this.page = await ask("texts", { run, cell, sort, turned, search, only, first, count: PAGE });
      this.listed();
      this.trouble("");
    } catch (error) { this.trouble(error.message); }
    this.classList.remove("stale");
  }

  async word() {
    const { run, cell, order, least } = this.asked, { words, wordless, list } = this.parts;
    try {
      const found = await ask("words", { run, cell, order, least });
      this.wordPage = found;
      words.open({ ...found, key: JSON.stringify([run, cell, order, least]) });
      list.replaceChildren(words.table());
      wordless.textContent = `${found.rows.length} of ${found.total.toLocaleString("en")} words, in the ${found.cell.scored.toLocaleString("en")} texts that both scored.`;
    } catch (error) { wordless.textContent = error.message; }
  }

  listed() {
    const { cell, total, first, rows } = this.page, { parts } = this, label = cell.method_label;
    const many = (n) => n.toLocaleString("en");
    const shown = rows.length ? `${many(first + 1)}–${many(first + rows.length)} of ${many(total)}` : total ? `none from ${many(first + 1)} on, of ${many(total)}` : "no text matches";
    const known = label ? `; attention and ${label} both scored ${many(cell.scored)}` : `; ${cell.said}`;
    parts.count.textContent = `Texts ${shown}${known}${cell.searched ? `; ${many(cell.searched)} have an adversary` : "; no adversaries were searched"}.`;
    const heads = ["text", "predicted", ...(label ? ["τ", "attention’s first", `${label}’s first`] : []), ...(cell.searched ? ["adversary’s JSD"] : []), "words"];
    parts.head.replaceChildren(...heads.map((said) => make("th", { scope: "col", className: /τ|JSD|^words/.test(said) ? "number" : "" }, said)));
    parts.body.replaceChildren(...rows.map((row) => this.line(row, cell)));
    parts.back.disabled = first === 0;
    parts.next.disabled = first + rows.length >= total;
    say(parts.count.textContent);
  }

  line(row, cell) {
    const sure = row.confidence === null ? "" : ` ${number(row.confidence, 2)}`, td = (said, kind = "") => make("td", { className: kind }, said);
    const predicted = make("td", { className: "predicted" }, `${classed(row.predicted)}${sure}`, ...(row.wrong ? [make("span", { className: "small error" }, `✗ it is ${classed(row.gold)}`)] : []));
    const open = make("button", { type: "button", className: "link text", onclick: () => this.dispatchEvent(new CustomEvent("text", { detail: row.text, bubbles: true })) }, row.text);
    const apart = cell.method_label ? [td(number(row.tau, 2), "number"), td(row.top_attention ?? "–"), td(row.top_other ?? "–")] : [];
    return make("tr", {}, make("th", { scope: "row" }, open), predicted, ...apart, ...(cell.searched ? [td(number(row.jsd, 3), "number")] : []), td(String(row.n), "number"));
  }

  /** Everything that is shown, as it came. */
  get found() { return { name: this.about.name, asked: { ...this.asked }, texts: this.page, words: this.wordPage ?? null }; }

  trouble(sentence) {
    this.parts.trouble.textContent = sentence;
    this.parts.trouble.hidden = !sentence;
    if (sentence) this.parts.count.textContent = "";
  }
}

customElements.define("exegete-data", Data);
