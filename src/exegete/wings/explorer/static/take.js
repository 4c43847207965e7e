// Take it away: the same numbers in Python, on the command line, as a file.

import { make, say } from "./dom.js";
import { pictured } from "./picture.js";
import { quoted, shell, sourced } from "./quote.js";
import { saveJson, savePage, savePng, saveSvg } from "./save.js";


/** @param {any} model */
function python(model) {
  const { about, text, chosen, rows } = model;
  const words = text.question === null ? quoted(text.text) : `(${quoted(text.text)}, ${quoted(text.question)})`;
  const given = [...rows].map(([row, weights]) => `${row}: [${weights.join(", ")}]`).join(", ");
  return `import exegete as ex\n\nlab = ex.lab(${sourced(about)}, ${words}, site=${quoted(chosen.site)}${about.writes ? `, step=${text.step}` : ""})\n`
    + `found = lab.weigh({${given}})\nprint(found.probabilities, found.tvd, found.jsd)\n${knockedOut(model)}`;
}

/** @param {any} model */
function knockedOut({ parts: { knockout } }) {
  const now = knockout.state;
  return now ? `cut = lab.cut(${now.word}, by=${now.by || "None"}, layers=(${now.first}, ${now.last}))\nprint(cut.probabilities, cut.tvd)\n` : "";
}

/** @param {any} model */
function command(model) {
  return `exegete explain ${shell(model.text.text)}${model.parts.heat.options} --json\n`;
}

/** Everything that is shown, as it came. @param {any} model */
function shown(model) {
  const { about, text, chosen, rows, opened, result, parts: { diff, heat, knockout, plane } } = model;
  return { model: about.name, ...text, site: chosen.site, keys: opened.keys, queries: opened.queries, heads: opened.heads,
    own: { rows: opened.rows, probabilities: opened.probabilities, prediction: opened.prediction },
    rows: Object.fromEntries(rows), result, tried: plane.trail, permutations: plane.drawn, cut: knockout.found ?? null, explanation: heat.explanation ?? null, difference: diff.found ?? null };
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); say("Copied"); } catch {
    const box = make("textarea", { value: text, className: "unseen" });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}

/** @param {any} model @param {"python"|"command"|"json"|"html"|"svg"|"png"} what */
export function take(model, what) {
  const ways = {
    python: () => copy(python(model)),
    command: () => copy(command(model)),
    json: () => saveJson("exegete", shown(model)),
    html: () => savePage("exegete", model.text.text, model, shown(model)),
    svg: () => saveSvg("exegete", pictured(model)),
    png: () => savePng("exegete", pictured(model)),
  };
  return ways[what]();
}

export { copy };
