// Files: what is shown as data, as a page that needs no other, and as a picture.

import { draw, make } from "./dom.js";

const STYLES = ["style.css", "report.css", "heatmap.css", "explorer.css"];
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor"];
const TWICE = 2; // pixels of a picture for one of the screen

/** @param {string} name @param {string} kind @param {BlobPart} content */
export function save(name, kind, content) {
  const address = URL.createObjectURL(new Blob([content], { type: kind }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** @param {string} name @param {any} found */
export const saveJson = (name, found) => save(`${name}.json`, "application/json", JSON.stringify(found, null, 1));

/** A colour of the style sheet as it is on this ground. @param {string} name */
export function ink(name) {
  const probe = make("span", { hidden: true });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A drawing that needs no style sheet, on a ground. @param {SVGSVGElement} svg one that is on the page */
export function standalone(svg) {
  const made = /** @type {SVGSVGElement} */ (svg.cloneNode(true)), { width, height } = svg.viewBox.baseVal;
  const parts = [svg, ...svg.querySelectorAll("*")], copies = [made, ...made.querySelectorAll("*")];
  parts.forEach((part, i) => {
    const is = getComputedStyle(part);
    for (const name of LOOK) copies[i].setAttribute(name, is.getPropertyValue(name));
    copies[i].removeAttribute("class");
  });
  made.setAttribute("width", String(width));
  made.setAttribute("height", String(height));
  made.prepend(draw("rect", { width, height, fill: ink("paper"), stroke: "none" }));
  return made;
}

/** @param {string} name @param {SVGSVGElement} svg that stands alone */
export function saveSvg(name, svg) { save(`${name}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(svg)); }

/** The same as pixels, drawn by the browser. @param {string} name @param {SVGSVGElement} svg */
export async function savePng(name, svg) {
  const source = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
  const picture = new Image();
  picture.src = source;
  await picture.decode();
  URL.revokeObjectURL(source);
  const canvas = make("canvas", { width: TWICE * picture.naturalWidth, height: TWICE * picture.naturalHeight });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((/** @type {Blob} */ blob) => save(`${name}.png`, "image/png", blob), "image/png");
}

/**
 * A page without scripts that shows what an element shows, and holds its numbers.
 * @param {string} name @param {string} title @param {HTMLElement} shown @param {any} found
 */
export async function savePage(name, title, shown, found) {
  const inert = new DOMParser().parseFromString(shown.outerHTML, "text/html"), inside = inert.body.firstElementChild; // no element of ours comes alive there
  const canvases = [...shown.querySelectorAll("canvas")];
  [...inside.querySelectorAll("canvas")].forEach((canvas, i) => {
    const image = inert.createElement("img");
    image.src = canvases[i].toDataURL();
    image.alt = canvases[i].getAttribute("aria-label") ?? "";
    image.className = canvas.className;
    canvas.replaceWith(image);
  });
  for (const button of inside.querySelectorAll("button")) {
    const plain = inert.createElement("span");
    plain.append(...button.childNodes);
    if (button.closest("td, th, .thumb")) button.replaceWith(plain); else button.remove();
  }
  for (const part of inside.querySelectorAll("input, select, textarea, progress, .choice, .buttons, .dear, .choices, .pager, .hint, [hidden]")) part.remove();
  for (const link of inside.querySelectorAll("a[href^='runs/']")) link.removeAttribute("href"); // there is no server any more
  const styles = await Promise.all(STYLES.map(async (sheet) => (await fetch(`static/${sheet}`)).text()));
  const escaped = title.replaceAll("&", "&amp;").replaceAll("<", "&lt;"), { scheme } = document.documentElement.dataset;
  save(`${name}.html`, "text/html", `<!doctype html>
<html lang="en"${scheme ? ` data-scheme="${scheme}"` : ""}>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped}</title>
<style>${styles.join("\n")}</style>
<script type="application/json" id="exegete">${JSON.stringify(found).replaceAll("<", "\\u003c")}</script>
</head>
<body><main><h1>${escaped}</h1>${inside.outerHTML}</main></body>
</html>
`);
}
