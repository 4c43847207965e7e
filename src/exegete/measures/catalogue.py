"""All measures by name, for `exegete ls measures` and for studies that name theirs."""

from exegete.base.catalogue import Catalogue, Entry

MEASURES = Catalogue(
    "measure",
    {
        "tau": Entry("exegete.measures.rank:tau", "Kendall's τ-b: do two lists order the items alike?", "Kendall τ-b"),
        "tau_max": Entry("exegete.measures.rank:tau_max", "the largest τ-b that the ties of the two lists allow"),
        "tau_corrected": Entry(
            "exegete.measures.rank:tau_corrected", "τ-b as a share of its attainable maximum", "τ-b / its maximum"
        ),
        "gamma": Entry(
            "exegete.measures.rank:gamma", "Goodman & Kruskal's γ: τ over the pairs that neither list ties", "γ"
        ),
        "spearman": Entry("exegete.measures.rank:spearman", "Spearman's ρ: correlation of ranks", "Spearman ρ"),
        "fagin": Entry(
            "exegete.measures.topk:fagin",
            "Fagin's top-k τ, scaled to what n and k allow: −1 for reversed lists",
            "Fagin top-k τ",
        ),
        "bucket": Entry(
            "exegete.measures.topk:bucket",
            "top-k τ of bucket orders (Neely et al. 2021); chance is below 0 for small k",
            "bucket top-k τ",
        ),
        "legacy": Entry(
            "exegete.measures.topk:legacy",
            "top-k τ as published code computes it: +0.8 for unrelated lists; for comparison only",
            "legacy top-k τ",
        ),
        "tvd": Entry("exegete.measures.divergence:tvd", "total variation distance of two distributions, 0 to 1"),
        "jsd": Entry("exegete.measures.divergence:jsd", "Jensen–Shannon divergence of two distributions, 0 to ln 2"),
        "entropy": Entry(
            "exegete.measures.divergence:normalised_entropy",
            "entropy of a distribution as a share of the uniform one's",
        ),
        "comprehensiveness": Entry(
            "exegete.measures.faithfulness:comprehensiveness", "what the class loses without a method's first words"
        ),
        "sufficiency": Entry(
            "exegete.measures.faithfulness:sufficiency", "what the class loses with nothing but a method's first words"
        ),
        "log_odds": Entry(
            "exegete.measures.faithfulness:log_odds", "comprehensiveness in log-odds, where nothing saturates"
        ),
        "flip": Entry("exegete.measures.faithfulness:flip", "share of the words that must go until another class wins"),
        "infidelity": Entry(
            "exegete.measures.robustness:infidelity", "how far scores are from adding up to what removals do"
        ),
        "sensitivity_max": Entry(
            "exegete.measures.robustness:sensitivity_max", "how far scores move when the embeddings hardly do"
        ),
        "auprc": Entry("exegete.measures.plausibility:auprc", "average precision of scores against marked words"),
        "token_f1": Entry("exegete.measures.plausibility:token_f1", "F1 of the k highest words against marked words"),
        "iou_f1": Entry("exegete.measures.plausibility:iou_f1", "F1 of runs of words that overlap by more than half"),
        "precision_at": Entry("exegete.measures.plausibility:precision_at", "share of marked words in the k highest"),
        "kappa": Entry("exegete.measures.kappa:kappa", "Cohen's κ: agreement of two people beyond chance"),
        "bleu": Entry("exegete.measures.bleu:bleu", "runs of 1 to 4 words shared with the reference, 0 to 100"),
        "alignment_error_rate": Entry(
            "exegete.measures.alignment:alignment_error_rate", "links between words against those that people drew"
        ),
    },
)
