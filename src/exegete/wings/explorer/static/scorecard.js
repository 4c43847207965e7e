// <exegete-scorecard>: what the audit found of every run, test by test, and all of them side by side.

import { ask } from "./api.js";
import { make, number } from "./dom.js";
import { saveJson, savePage } from "./save.js";
import "./audit.js";

export class Scorecard extends HTMLElement {
  /** @param {any[]} abouts all models; those that are runs have a scorecard */
  open(abouts) {
    this.runs = abouts.filter(({ run }) => run);
    this.others = abouts.filter(({ run }) => !run);
    this.cards = null;
  }

  /** Read once; a run that could not be read may be complete by the next time. */
  async show() {
    if (this.cards?.every(({ error }) => !error)) return;
    this.setAttribute("aria-busy", "true");
    this.replaceChildren(make("p", { className: "small", role: "status" }, "Reading the scorecard…"));
    this.cards = await Promise.all(this.runs.map(async ({ model, source }) => {
      try { return await ask("scorecard", { run: model }); } catch (error) { return { run: model, name: source ?? "the default audit", error: error.message }; }
    }));
    const judged = this.cards.filter(({ error }) => !error);
    const button = (said, work) => make("button", { type: "button", onclick: work }, said);
    const take = make("div", { className: "buttons take", role: "group", "aria-label": "Take it away" },
      button("Save JSON", () => saveJson("exegete-scorecard", this.found)), button("Save HTML", () => savePage("exegete-scorecard", "Scorecard", this, this.found)));
    this.replaceChildren(...this.beside(judged), ...this.cards.map((card) => this.one(card)), ...this.others.map((about) => Object.assign(make("exegete-audit"), { about })), ...(judged.length ? [take] : []));
    this.removeAttribute("aria-busy");
  }

  one(card) {
    if (card.error) return make("section", {}, make("h2", {}, card.name), make("p", { className: "wrong", role: "alert" }, card.error));
    const [answer, read, ...more] = card.answer.split("\n\n");
    const body = make("div");
    body.innerHTML = card.html; // the report's own template, escaped on the server; the policy lets no script in
    for (const link of body.querySelectorAll("a[href^='#']")) this.chapter(link, card);
    body.querySelector("caption strong").textContent = `${this.cards.length > 1 ? `Run ${card.run + 1}. ` : ""}What decides.`;
    return make("section", { className: "one-card" }, make("h2", {}, card.name), make("p", { className: "answer" }, answer), ...(read ? [make("p", {}, read)] : []),
      make("details", {}, make("summary", {}, "The whole answer"), ...more.map((said) => make("p", {}, said)), ...card.untested.map((said) => make("p", { className: "small" }, said))),
      ...(card.report ? [make("p", { className: "small" }, "Every test opens its chapter in the ", make("a", { href: `runs/${card.run}/report`, target: "_blank", rel: "noopener" }, "report"), ".")]
        : [make("p", { className: "small" }, "Its report is not written, or was changed: `exegete report` writes it, and then every test opens its chapter.")]), body);
  }

  /** A test opens its chapter, in a page of its own; without a report it is a word. */
  chapter(link, { run, report }) {
    if (!report) { link.replaceWith(make("span", {}, link.textContent)); return; }
    Object.assign(link, { href: `runs/${run}/report${link.getAttribute("href")}`, target: "_blank", rel: "noopener" });
  }

  /** A line per test, a column per model: where there are several. */
  beside(cards) {
    const all = cards.flatMap((card) => card.tests.map((test) => ({ ...test, at: `${card.run} ${test.of}`, said: cards.length > 1 ? `${test.of} (run ${card.run + 1})` : test.of })));
    const columns = new Map(all.map(({ at, said }) => [at, said])), names = [...new Set(all.map(({ name }) => name))];
    if (columns.size < 2) return [];
    const cell = (test) => (test ? make("td", {}, make("span", { className: `verdict ${test.verdict.replaceAll(" ", "-")}` }, `${test.sign} ${test.outcome}`), test.statistic === null ? "" : ` ${number(test.statistic, 2)}`) : make("td", {}, "–"));
    const lines = names.map((name) => make("tr", {}, make("th", { scope: "row" }, all.find((test) => test.name === name).label, ...(all.some((test) => test.name === name && test.votes) ? [make("span", { title: "decides" }, " ◆")] : [])),
      ...[...columns.keys()].map((at) => cell(all.find((test) => test.name === name && test.at === at)))));
    const table = make("table", { className: "beside" }, make("caption", {}, "A line per test with its verdict and statistic; ◆ decides the answer. Tests have different scales: compare along a line."),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "test"), ...[...columns.values()].map((said) => make("th", { scope: "col" }, said)))), make("tbody", {}, ...lines));
    return [make("section", {}, make("h2", {}, "Side by side"), make("div", { className: "scroll", role: "region", "aria-label": "Models side by side", tabIndex: 0 }, table))];
  }

  /** Everything that is shown, as it came. */
  get found() { return this.cards.map(({ html, ...card }) => card); }
}

customElements.define("exegete-scorecard", Scorecard);
