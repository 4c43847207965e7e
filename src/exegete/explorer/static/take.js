// Take it away: the same numbers in Python, on the command line, as a file.

import { make, say } from "./dom.js";

const quoted = (text) => JSON.stringify(text);
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** @param {any} model */
function python(model) {
  const { about, text, chosen, rows } = model;
  const words = text.question === null ? quoted(text.text) : `(${quoted(text.text)}, ${quoted(text.question)})`;
  const given = [...rows].map(([row, weights]) => `${row}: [${weights.join(", ")}]`).join(", ");
  return `import exegete as ex\n\nlab = ex.lab(${about.source === null ? "None" : quoted(about.source)}, ${words}, site=${quoted(chosen.site)})\n`
    + `found = lab.weigh({${given}})\nprint(found.probabilities, found.tvd, found.jsd)\n`;
}

/** @param {any} model */
function command(model) {
  const { about, text, parts: { heat } } = model;
  const source = about.source === null ? "" : ` --model ${shell(about.source)}`;
  const question = text.question === null ? "" : ` --question ${shell(text.question)}`;
  const methods = heat.explanation ? ` --with ${shell(heat.explanation.methods.map(({ name }) => name).join(","))}` : "";
  return `exegete explain ${shell(text.text)}${question}${source}${methods} --json\n`;
}

/** Everything that is shown, as it came. @param {any} model */
function shown(model) {
  const { about, text, chosen, rows, opened, result, parts: { heat, plane } } = model;
  return { model: about.name, ...text, site: chosen.site, keys: opened.keys, queries: opened.queries, heads: opened.heads,
    own: { rows: opened.rows, probabilities: opened.probabilities, prediction: opened.prediction },
    rows: Object.fromEntries(rows), result, tried: plane.trail, permutations: plane.drawn, explanation: heat.explanation ?? null };
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

/** @param {any} model @param {"python"|"command"|"json"} what */
export function take(model, what) {
  if (what !== "json") return copy(what === "python" ? python(model) : command(model));
  const address = URL.createObjectURL(new Blob([JSON.stringify(shown(model), null, 1)], { type: "application/json" }));
  make("a", { href: address, download: "exegete.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  return undefined;
}

export { copy };
