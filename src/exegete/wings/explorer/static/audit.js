// <exegete-audit>: a model that has no scorecard yet; its audit is run from here, with its progress and an estimate.

import { follow } from "./api.js";
import { fresh, make, say } from "./dom.js";

const START = "Run the audit";

export class Audit extends HTMLElement {
  connectedCallback() {
    if (this.parts) return;
    const id = fresh("choice"), heading = fresh("audit");
    const size = make("select", { id }, make("option", { value: "quick" }, "quick"), make("option", { value: "whole" }, "whole"));
    const button = make("button", { type: "button", className: "primary", onclick: () => this.run() }, START);
    const bar = make("progress", { hidden: true, "aria-label": "The audit" });
    const said = make("span", { className: "small" }), estimate = make("p", { className: "small", role: "status" }), trouble = make("p", { className: "wrong", role: "alert", hidden: true });
    this.parts = { size, button, bar, said, estimate, trouble };
    this.append(make("section", { "aria-labelledby": heading }, make("h2", { id: heading }, this.about.name),
      make("p", {}, "It has not been audited: every test of the debate, on the texts of the task that it was trained on, and an answer. Quick is one seed and at most 200 texts."),
      make("div", { className: "choices" }, make("div", { className: "choice" }, make("label", { htmlFor: id }, "Audit"), size), button),
      make("p", { className: "progress" }, bar, said), estimate, trouble));
  }

  /** Start, or stop what goes on: what is done is kept, and a second start goes on from there. */
  async run() {
    const { size, button, bar, said, estimate, trouble } = this.parts;
    if (button.textContent === "Stop") { this.going.abort(); return; }
    this.going = new AbortController();
    const { signal } = this.going;
    button.textContent = "Stop";
    Object.assign(bar, { hidden: false });
    bar.removeAttribute("value");
    trouble.hidden = size.disabled = true;
    said.textContent = "Starting…";
    try {
      await follow("audit", { model: this.about.model, quick: size.value === "quick" }, (told) => this.look(told), signal);
      say("The audit is complete");
      this.dispatchEvent(new Event("audited", { bubbles: true }));
    } catch (error) {
      if (!signal.aborted) trouble.textContent = error.message;
      trouble.hidden = signal.aborted;
    }
    button.textContent = START;
    size.disabled = false;
    bar.hidden = true;
    said.textContent = signal.aborted ? "Stopped; what is done is kept." : "";
    estimate.textContent = "";
  }

  look(told) {
    const { bar, said, estimate } = this.parts;
    if (told.estimate) { estimate.textContent = `${told.estimate[0].toUpperCase()}${told.estimate.slice(1)}.`; return; }
    said.textContent = told.said;
    Object.assign(bar, { max: told.total || 1, value: told.done });
  }
}

customElements.define("exegete-audit", Audit);
