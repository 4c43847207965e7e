// <exegete-grid>: layers × heads as small matrices, and the chosen one large, query × key. Shade is a row's weight.

import { make, number } from "./dom.js";

const SMALL = 56, LARGE = 340;

/** Draw rows of weights on a canvas, each cell a shade of the attention's hue. @param {HTMLCanvasElement} canvas @param {number[][]} rows */
function shade(canvas, rows, size) {
  const scale = devicePixelRatio || 1, pen = canvas.getContext("2d"), cell = (size * scale) / Math.max(1, rows.length);
  const wide = (size * scale) / Math.max(1, rows[0]?.length ?? 1);
  canvas.width = canvas.height = size * scale;
  pen.fillStyle = getComputedStyle(canvas).color;
  rows.forEach((row, y) => {
    const largest = Math.max(...row, 1e-9);
    row.forEach((weight, x) => {
      pen.globalAlpha = weight / largest;
      pen.fillRect(x * wide, y * cell, Math.ceil(wide), Math.ceil(cell));
    });
  });
}

export class Grid extends HTMLElement {
  /**
   * @param {Record<string, {heads: number, queries: string[], keys: string[], rows: number[][]}>} sites
   * @param {{site: string, head: number, query: number}} chosen
   * @param {(site: string, head: number) => number[][]} weights as they are now
   */
  open(sites, chosen, weights) {
    Object.assign(this, { sites, chosen, weights });
    const lines = Object.entries(sites).map(([site, { heads }]) => make("div", { className: "layer" }, make("span", { className: "label" }, site),
      make("div", { className: "thumbs" }, ...Array.from({ length: heads }, (_, head) => this.thumb(site, head)))));
    this.style.setProperty("--heads", String(Math.max(...Object.values(sites).map(({ heads }) => heads))));
    this.big = make("canvas", { className: "big", "aria-hidden": "true", onclick: (event) => this.pick(event) });
    this.caption = make("p", { className: "small" });
    this.replaceChildren(make("div", { className: "layers", role: "group", "aria-label": "Layers and heads" }, ...lines),
      make("div", { className: "one" }, this.big, this.caption));
    this.show();
  }

  thumb(site, head) {
    const canvas = make("canvas", { "aria-hidden": "true" });
    return make("button", {
      type: "button", className: "thumb", "data-site": site, "data-head": String(head), "aria-label": `${site}, head ${head + 1}`,
      onclick: () => this.choose({ site, head, query: 0 }),
    }, canvas);
  }

  choose(chosen) { this.dispatchEvent(new CustomEvent("chosen", { detail: chosen })); }

  pick({ offsetY }) {
    const { queries } = this.sites[this.chosen.site];
    const query = Math.min(queries.length - 1, Math.floor((offsetY / this.big.clientHeight) * queries.length));
    this.choose({ ...this.chosen, query });
  }

  show() {
    if (!this.sites) return;
    const { site, head, query } = this.chosen;
    for (const button of this.querySelectorAll(".thumb")) {
      const its = { site: button.dataset.site, head: Number(button.dataset.head) };
      button.setAttribute("aria-pressed", String(its.site === site && its.head === head));
      shade(button.firstChild, this.weights(its.site, its.head), SMALL);
    }
    const rows = this.weights(site, head), { queries, keys } = this.sites[site];
    shade(this.big, rows, LARGE);
    const pen = this.big.getContext("2d"), tall = this.big.height / rows.length;
    pen.globalAlpha = 1;
    pen.strokeStyle = getComputedStyle(this).color;
    pen.lineWidth = 2 * (devicePixelRatio || 1);
    pen.strokeRect(1, query * tall, this.big.width - 2, tall);
    const row = rows[query], most = row.indexOf(Math.max(...row));
    const looks = queries.length > 1 ? `“${queries[query]}” looks` : "What is read looks";
    this.caption.textContent = `Rows look, columns are looked at. ${looks} most at “${keys[most]}”: ${number(row[most])}. Click a row to take it in hand.`;
  }
}

customElements.define("exegete-grid", Grid);
