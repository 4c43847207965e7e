// Elements: a page is made of these, never of strings, so that no text can become a tag.

/**
 * @param {string} tag @param {Record<string, any>} [given] properties, attributes, on… listeners @param {...(Node|string)} inside
 * @returns {any}
 */
export function make(tag, given = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

/** @param {string} tag @param {Record<string, any>} [given] @param {...Node} inside */
export function draw(tag, given = {}, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, String(value));
  made.append(...inside);
  return made;
}

/** @param {number|null|undefined} x @param {number} [places] */
export const number = (x, places = 3) => (x === null || x === undefined ? "–" : x.toFixed(places).replace("-", "−"));
/** A class that is only a number says that it is one; a word of a translator is the word. @param {string} label */
export const classed = (label) => (/^\d+$/.test(label) ? `class ${label}` : label === "</s>" ? "the end" : label.replace(/^▁(?=.)/, ""));
/** Wait until nothing came for a while. @param {() => void} work @param {number} wait */
export function settled(work, wait) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, wait); };
}
/** @param {string} id what it is told, at most twice a second: a screen reader reads it all */
let telling = 0;
export function say(sentence) {
  clearTimeout(telling);
  telling = setTimeout(() => { document.getElementById("said").textContent = sentence; }, 500);
}
/** What an address or a text asks for and can't have, and what is shown instead; it stays until something else is asked. @param {string} sentence */
export function note(sentence) {
  const place = document.getElementById("note"), lines = new Set([...place.children].map((line) => line.textContent));
  if (!lines.has(sentence)) place.append(make("span", {}, sentence));
  place.hidden = false;
}
export function unnoted() {
  const place = document.getElementById("note");
  place.replaceChildren();
  place.hidden = true;
}
let numbers = 0;
export const fresh = (name) => `${name}-${numbers += 1}`;
