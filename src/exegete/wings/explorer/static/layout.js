// Where the parts of a model's panel stand.

import { fresh, make } from "./dom.js";
import "./bars.js";
import "./diff.js";
import "./heat.js";
import "./knockout.js";
import "./matrix.js";
import { term } from "./now.js";
import "./output.js";
import "./plane.js";
import "./prediction.js";

/** @param {any} model the element to fill @returns {Record<string, any>} its parts */
export function layout(model) {
  const heading = fresh("model");
  const button = (said, work, given = {}) => make("button", { type: "button", onclick: work, ...given }, said);
  const choice = (name, options, work) => {
    const id = fresh("choice"), select = make("select", { id, onchange: work }, ...options.map(([value, said]) => make("option", { value }, said)));
    return [select, make("div", { className: "choice" }, make("label", { htmlFor: id }, name), select)];
  };
  const parts = { numbers: {} };
  parts.title = make("h2", { id: heading });
  parts.answer = make("p", { className: "audited", hidden: !model.about.answer }, model.about.answer ?? "");
  parts.said = make("span");
  parts.bar = make("progress", { hidden: true, "aria-label": "Getting the model ready" });
  parts.state = make("div", { className: "state", role: "status" }, parts.said, parts.bar);
  parts.trouble = make("p", { className: "wrong", hidden: true, role: "alert" });
  parts.bars = make("exegete-bars", { ontaken: () => model.begin(), onweights: ({ detail }) => model.hold(detail) });
  parts.grid = make("exegete-grid", { hidden: true, onchosen: ({ detail }) => model.choose(detail) });
  parts.rowName = make("p", { className: "row-name", hidden: true });
  const [site, where] = choice("Site", model.about.sites.map((name) => [name, name]), () => model.choose({ site: site.value, head: 0, query: 0 }));
  const [over, scope] = choice("Buttons change", [["all", "all rows"], ["head", "this head"], ["row", "this row"]], () => {});
  const [epsilon, band] = choice("ε", [["0.01", "0.01"], ["0.05", "0.05"]], () => { parts.plane.epsilon = Number(epsilon.value); parts.plane.show(); model.effect(); });
  Object.assign(parts, { site, where, over, scope, epsilon });
  const whole = make("input", { type: "checkbox", checked: true, id: fresh("whole"), onchange: () => { parts.bars.whole = whole.checked; } });
  parts.undo = button("Undo", () => model.undo());
  parts.redo = button("Redo", () => model.redo());
  parts.reset = button("Model’s own", () => model.reset());
  parts.adversary = button("Find an adversary", () => model.search.start(), { className: "primary" });
  const count = make("input", { type: "number", id: fresh("count"), min: "1", max: "99", value: "1", className: "few-digits" });
  parts.sinks = button("Remove sinks", () => model.rewrite({ how: "sinks" }), { hidden: true, title: "No weight on symbols and on the first token" });
  const presets = make("div", { className: "buttons", role: "group", "aria-label": "Change the weights" },
    button("Uniform", () => model.rewrite({ how: "uniform" })),
    button("Reverse", () => model.rewrite({ how: "reverse" })),
    button("Permute", () => model.rewrite({ how: "permute", draw: (model.draws += 1) - 1 })),
    make("span", { className: "pressed-with" }, button("Remove the top", () => model.rewrite({ how: "remove", count: Math.min(99, Math.max(1, Math.round(Number(count.value)) || 1)) })),
      make("label", { htmlFor: count.id, className: "unseen" }, "How many of the highest weights"), count), parts.sinks,
    button("Ablate", () => model.rewrite({ how: "zero" }), { title: "All weights 0: what attends adds nothing" }),
    button("Permute 100 times", () => model.permute()), parts.adversary);
  const past = make("div", { className: "buttons", role: "group", "aria-label": "Undo" }, parts.undo, parts.redo, parts.reset,
    make("span", { className: "check" }, whole, make("label", { htmlFor: whole.id }, "others share what is left")));
  parts.knockout = make("exegete-knockout", { hidden: true });
  parts.now = make("exegete-now", { hidden: true });
  parts.prediction = make("exegete-prediction");
  parts.plane = make("exegete-plane");
  parts.game = make("p", { className: "game" });
  parts.outcomes = make("p", { className: "small outcomes" });
  parts.steps = make("p", { className: "small steps" });
  parts.held = make("exegete-prediction");
  parts.frozen = make("div", { className: "frozen", hidden: true }, make("p", { className: "small" }, "Above, later layers follow. With all other layers held as they were:"), parts.held);
  const fact = (name, ...said) => { parts.numbers[name] = make("dd"); return make("div", {}, make("dt", {}, ...said), parts.numbers[name]); };
  const facts = make("dl", { className: "facts" }, fact("tvd", term("TVD"), " of the prediction"), fact("jsd", term("JSD"), " of the weights"), fact("decision", "decision"));
  parts.take = make("div", { className: "buttons take", role: "group", "aria-label": "Take it away" },
    button("Copy Python", () => model.takeAway("python")), button("Copy command", () => model.takeAway("command")), button("Save JSON", () => model.takeAway("json")),
    button("Save HTML", () => model.takeAway("html")), button("Save SVG", () => model.takeAway("svg")), button("Save PNG", () => model.takeAway("png")));
  parts.heat = make("exegete-heat", { onasked: () => model.changedQuestion() });
  parts.diff = make("exegete-diff", { hidden: true });
  parts.output = make("exegete-output", { hidden: !model.about.writes, onchosen: ({ detail }) => model.step(detail) });
  const hand = make("div", { className: "hand" }, make("h3", {}, "Attention in hand"),
    make("div", { className: "choices" }, where, scope), parts.grid, parts.rowName, parts.bars,
    make("p", { className: "legend" }, make("span", { className: "key own-key" }), "the model’s own", make("span", { className: "key moved-key" }), "moved by you; the line is where the model had it.", make("span", { className: "hint" }, " Drag a bar, or use the arrow keys; the dot below a word locks it.")),
    presets, past, parts.outcomes, parts.steps, parts.knockout);
  const effect = make("div", { className: "effect" }, make("h3", {}, "What the prediction does"), parts.prediction, parts.frozen, facts, parts.plane, band, parts.game, parts.take);
  Object.assign(parts, { hand, effect });
  parts.bench = make("div", { className: "bench", hidden: true }, parts.output, parts.diff, hand, effect, parts.heat);
  model.setAttribute("role", "region");
  model.setAttribute("aria-labelledby", heading);
  model.replaceChildren(parts.title, parts.answer, parts.state, parts.trouble, parts.now, parts.bench);
  return parts;
}
