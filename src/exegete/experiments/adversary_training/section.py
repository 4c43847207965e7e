"""Adversary training in a report: can a model learn to predict the same with other attention?"""

from exegete.experiments.common.section import Passage, chapter, keep_decimals, shown
from exegete.report.columns import count, interval, number, share, text, wide

KINDS = {
    "unfrozen": "trained, everything moves",
    "frozen": "trained, only attention moves",
    "seed": "other seeds",
    "searched": "searched per text",
}

MEANING = (
    "A model is trained to predict as this one does and to attend elsewhere: its loss is the TVD of predictions less λ "
    "times the KL divergence of its weights from the model's. From scratch, all of it is new; where only attention "
    "moves, it starts as the model itself. TVD is ½ Σ |p − q|, for two classes the difference of the probabilities; "
    "Wiegreffe & Pinter print half of it. JSD is in natural logarithms, at most 0.693. Flat weights are near all "
    "others: the ratio is JSD over that with the adversary's weights permuted, about 1 for weights that share nothing "
    "but their shape. Searched weights are one set per text that no model computes; other seeds say how far "
    "attention goes by itself."
)
READ = (
    "Attention that can be moved far at no cost in predictions is not the only explanation that this architecture "
    "could give; that does not make it a wrong one. Compare with searched weights, which need no model, and with other "
    "seeds, which nobody pushed."
)
ADVERSARIES = shown(
    "Adversaries",
    text("kind"), text("lam", "λ"), text("tolerance", "ε"), number("jsd", "JSD"),
    *wide(interval("jsd_low", "jsd_high"), number("ratio", "of permuted")), number("tvd", "TVD"),
    *wide(interval("tvd_low", "tvd_high"), share("within_0.01", "TVD ≤ 0.01")), share("within_0.05", "TVD ≤ 0.05"),
    *wide(count("seeds")), count("n"), *wide(count("undefined")),
    caption="Means over texts. Undefined: texts of one word, which have one weight and no divergence.",
    words={"kind": KINDS}, then=lambda frame: keep_decimals(frame, "lam", "tolerance"),
)  # fmt: skip
PRINTED = shown(
    "As Wiegreffe & Pinter print it",
    text("kind"), text("lam", "λ"), number("base_f1", "F1, model"), number("f1", "F1, adversary"),
    number("tvd", "TVD"), number("tvd_halved", "TVD, halved"), number("jsd", "JSD"), count("seeds"), count("n"),
    caption="F1 is that of the second class of two, or the mean over gold classes. Their tables have the halved TVD.",
    of="wiegreffe_pinter", words={"kind": KINDS}, then=lambda frame: keep_decimals(frame, "lam"),
)  # fmt: skip
MEISTER = shown(
    "As Meister et al. print it (table 5)",
    text("kind"), text("lam", "λ"), number("jsd", "JSD"), number("base_accuracy", "accuracy, model"),
    number("accuracy", "accuracy, adversary"), number("difference"), interval("difference_low", "difference_high"),
    count("seeds"), count("n"),
    caption="Differences are paired by text.", of="meister_5", words={"kind": KINDS},
    then=lambda frame: keep_decimals(frame, "lam"),
)  # fmt: skip
headline, sections = chapter(
    ADVERSARIES,
    Passage(
        "Can other attention be learnt that predicts the same?",
        [MEANING, READ],
        [ADVERSARIES, PRINTED, MEISTER],
        {"curve": "How far, and at what price", "violins": "Divergence by largest weight"},
    ),
)
