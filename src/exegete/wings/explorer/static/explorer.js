// The page: a text for all models, the views of runs, and an address that restores what is shown.

import { ask } from "./api.js";
import { make, note, settled, unnoted } from "./dom.js";
import { read, written } from "./edits.js";
import { copy } from "./take.js";
import { Views } from "./views.js";
import "./model.js";

const FIRST = "a charming and often affecting journey", ASKED = "what is it about ?";
const PAUSE = 120, LOOK = 700, MOST_STEPS = 2048;
const text = document.getElementById("text"), question = document.getElementById("question");
const place = document.getElementById("models"), second = document.getElementById("second");
const beside = document.getElementById("beside"), other = /** @type {any} */ (document.getElementById("other"));
const compare = document.getElementById("compare");
/** @type {any[]} */
let panels = [];

/** The text to compare with, or none. */
const compared = () => (beside.hidden ? null : other.value);

const pair = (panel) => panel.about.pair;
const said = (panel) => ({ text: text.value, question: pair(panel) ? question.value : null });
const state = () => new URLSearchParams(location.hash.slice(1));

const views = new Views(() => remember());

/** Give the text to every model that is ready; an address's edits come with it once. */
function readAll(from = null) {
  if (!text.value.trim()) return;
  for (const panel of panels) if (panel.about.state === "ready") start(panel, from);
  remember();
}

function start(panel, from) {
  const number = panel.about.model, rows = from?.get(`rows.${number}`);
  if (from) {
    panel.parts.knockout.restore(from.get(`cut.${number}`));
    panel.parts.heat.restore(from.get(`heat.${number}`) ?? "");
    panel.at = Math.min(MOST_STEPS, Math.max(1, Math.round(Number(from.get(`step.${number}`))) || 1));
  }
  panel.compare(compared());
  panel.read(said(panel), from && (rows || from.get(`site.${number}`)) ? { rows: read(rows), site: from.get(`site.${number}`) } : null);
}

/** An address may be of another start, with other models. @param {URLSearchParams} from */
function check(from) {
  const numbers = [...from.keys()].map((name) => Number(/^(?:site|rows|cut|step|heat)\.(\d+)$/.exec(name)?.[1] ?? 0));
  const last = Math.max(0, ...numbers);
  if (last >= panels.length) note(`This address is also about model ${last + 1}, and ${panels.length === 1 ? "there is one model" : `there are ${panels.length}`}: that part is left out.`);
}

/** The address says what is shown. */
const remember = settled(() => {
  const now = new URLSearchParams({ text: text.value });
  if (!second.hidden) now.set("question", question.value);
  if (compared() !== null) now.set("other", other.value);
  for (const panel of panels) {
    const number = panel.about.model;
    if (panel.opened && panel.about.sites.length > 1) now.set(`site.${number}`, panel.chosen.site);
    if (panel.parts?.knockout.written) now.set(`cut.${number}`, panel.parts.knockout.written);
    if (panel.at > 1) now.set(`step.${number}`, String(panel.at));
    if (panel.parts?.heat.written) now.set(`heat.${number}`, panel.parts.heat.written);
    if (panel.opened && panel.rows.size) now.set(`rows.${number}`, written(panel.rows));
  }
  for (const [name, value] of views.state) now.set(name, value);
  history.replaceState(null, "", `#${now}`);
}, 250);

function fill(from) {
  text.value = from.get("text") ?? FIRST;
  question.value = from.get("question") ?? ASKED;
  other.value = from.get("other") ?? "";
  beside.hidden = !from.has("other");
  compare.setAttribute("aria-expanded", String(!beside.hidden));
  grow();
}

/** A box as high as its text. */
function grow() {
  for (const box of [text, question, other]) {
    box.style.height = "auto";
    if (box.scrollHeight) box.style.height = `${box.scrollHeight + 2}px`;
  }
}

/** Look how far the models are; those that became ready begin. */
async function look(from) {
  let abouts = [];
  try { abouts = await ask("models"); } catch (error) {
    place.replaceChildren(make("p", { className: "wrong", role: "alert" }, error.message));
    return;
  }
  if (!panels.length) {
    panels = abouts.map(() => make("exegete-model"));
    place.className = panels.length > 1 ? "several" : "";
    document.body.classList.toggle("wide", panels.length > 1);
    place.replaceChildren(...panels);
    views.open(abouts, from);
    check(from);
  }
  const ready = panels.filter((panel, i) => panel.tell(abouts[i]));
  second.hidden = !panels.some(pair);
  grow();
  for (const panel of ready) start(panel, from);
  const waiting = abouts.some(({ state: is, methods }) => is === "loading" || (is === "ready" && methods.some(({ cheap, milliseconds }) => !cheap && milliseconds === null)));
  if (waiting) setTimeout(() => look(from), LOOK);
}

const typed = settled(() => { unnoted(); readAll(); }, PAUSE);
for (const box of [text, question]) box.addEventListener("input", () => { grow(); typed(); });
document.getElementById("ask").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("main").addEventListener("changed", () => remember());
document.querySelector("main").addEventListener("audited", async () => { views.runs(await ask("models")); views.show(views.now); });
addEventListener("hashchange", () => { unnoted(); fill(state()); views.restore(state()); check(state()); readAll(state()); });
views.data.addEventListener("text", (/** @type {any} */ { detail }) => {
  views.show("text"); // first: a box that is hidden has no height to grow to
  unnoted();
  text.value = detail;
  grow();
  readAll();
  scrollTo(0, 0);
  text.focus();
});
addEventListener("resize", grow);
compare.addEventListener("click", () => {
  beside.hidden = !beside.hidden;
  compare.setAttribute("aria-expanded", String(!beside.hidden));
  if (!beside.hidden) {
    other.value ||= text.value;
    grow();
    other.focus();
  }
  compareAll();
});
const compareAll = () => { for (const panel of panels) panel.compare(compared()); remember(); };
const retyped = settled(compareAll, PAUSE);
other.addEventListener("input", () => { grow(); retyped(); });
document.getElementById("copy-address").addEventListener("click", () => copy(location.href));
fill(state());
look(state());
