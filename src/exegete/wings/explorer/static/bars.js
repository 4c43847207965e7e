// <exegete-bars>: one row of weights as bars over the words; each can be dragged, by pointer or by key, and locked.

import { dragged, sum } from "./edits.js";
import { fresh, make, number } from "./dom.js";

const STEP = 0.01, LEAP = 0.1, LEAST = 0.2; // of a scale
const FEW = 12; // words that have room to spare

export class Bars extends HTMLElement {
  constructor() {
    super();
    this.locked = new Set();
    this.whole = true;
    this.columns = [];
  }

  /** @param {string[]} keys @param {number[]} own */
  open(keys, own) {
    const same = this.keys?.join("\n") === keys.join("\n");
    Object.assign(this, { keys, own });
    if (!same) { this.locked.clear(); this.build(); }
    this.show(own);
  }

  /** The weights as they are now. @param {number[]} row */
  show(row) {
    this.row = row;
    if (!this.dragging) this.top = Math.min(1, Math.max(LEAST, 1.25 * Math.max(...this.own, ...row)));
    this.columns.forEach((column, key) => this.draw(column, key));
  }

  build() {
    this.columns = this.keys.map((word, key) => this.column(word, key));
    this.classList.toggle("few", this.keys.length <= FEW);
    this.replaceChildren(...this.columns.map((column) => column.whole));
  }

  column(word, key) {
    const id = fresh("word");
    const fill = make("div", { className: "fill" }), mark = make("div", { className: "own" });
    const value = make("div", { className: "value", "aria-hidden": "true" });
    const bar = make("div", {
      className: "bar", tabIndex: 0, role: "slider", "aria-labelledby": id, "aria-valuemin": "0", "aria-valuemax": "1",
      "aria-orientation": "vertical",
      onpointerdown: (event) => this.grab(event, key), onkeydown: (event) => this.press(event, key),
    }, fill, mark);
    const lock = make("button", {
      type: "button", className: "lock", "aria-pressed": "false", "aria-label": `Lock ${word}`, title: `Lock ${word}`,
      onclick: () => this.toggle(key),
    });
    const said = make("span", { id, className: "word" }, word);
    return { whole: make("div", { className: "column" }, value, bar, said, lock), bar, fill, mark, value, lock };
  }

  draw({ whole, bar, fill, mark, value, lock }, key) {
    const weight = this.row[key], own = this.own[key], moved = Math.abs(weight - own) > 5e-7;
    fill.style.height = `${100 * Math.min(1, weight / this.top)}%`;
    mark.style.bottom = `${100 * Math.min(1, own / this.top)}%`;
    value.textContent = number(weight, 2);
    whole.classList.toggle("moved", moved);
    bar.setAttribute("aria-valuenow", weight.toFixed(6));
    bar.setAttribute("aria-valuetext", moved ? `${number(weight)}, the model’s own ${number(own)}` : `${number(weight)}, the model’s own`);
    lock.setAttribute("aria-pressed", String(this.locked.has(key)));
  }

  toggle(key) {
    if (!this.locked.delete(key)) this.locked.add(key);
    this.draw(this.columns[key], key);
  }

  grab(event, key) {
    if (event.button !== 0) return;
    event.preventDefault();
    const { bar } = this.columns[key], box = bar.getBoundingClientRect();
    const move = ({ clientY }) => this.drag(key, (this.top * (box.bottom - clientY)) / box.height);
    const end = () => {
      bar.removeEventListener("pointermove", move);
      this.dragging = false;
      this.show(this.row);
      this.dispatchEvent(new Event("let-go"));
    };
    bar.focus();
    bar.setPointerCapture(event.pointerId);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", end, { once: true });
    this.dispatchEvent(new Event("taken"));
    this.dragging = true;
    move(event);
  }

  press(event, key) {
    const now = this.row[key];
    const moves = {
      ArrowUp: now + STEP, ArrowRight: now + STEP, ArrowDown: now - STEP, ArrowLeft: now - STEP,
      PageUp: now + LEAP, PageDown: now - LEAP, Home: 0, End: 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.dispatchEvent(new Event("taken"));
    this.drag(key, moves[event.key]);
  }

  drag(key, value) {
    const rule = { whole: this.whole, total: sum(this.own), locked: this.locked };
    this.show(dragged(this.row, key, value, rule));
    this.dispatchEvent(new CustomEvent("weights", { detail: this.row }));
  }
}

customElements.define("exegete-bars", Bars);
