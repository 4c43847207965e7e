"""How mediation is measured, and what the audit asks of it: the three questions that decide, and two that explain."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "With e_t, what the predicted class loses without word t, and w_t, what it loses when the weight of t alone is "
        "zeroed: M = 1 − Σ (e_t − w_t)² / Σ e_t²; Γ = Σ (2 R_t(α) − n − 1) |e_t| / Σ (2 R_t(|e|) − n − 1) |e_t|; "
        "F = min(1, |z(α) − z(flat)| / √Σ e_t²)."
    ),
    misleads=(
        "No way of removing a word is the right one, so all of them are asked, and what holds in one and fails in "
        "another is said to depend on it. Texts in which no word matters have no order to find, and are left out."
    ),
    page="concepts/how-we-decide.md",
    title="How we decide",
)

_HERE = "exegete.experiments.mediation.statistics"

TESTS = (
    Test(
        name="reads",
        label="acts through its weight (M)",
        question="Does a word act on the prediction through its own weight?",
        criterion="the share M of what words do that their own weights do is above {margin} in every specification",
        margin=0.25,
        source="Vig et al. 2020",
        experiments=("mediation",),
        statistic=f"{_HERE}:reads",
        part="weights",
        goals=("faithful",),
        words="whether a word acts on the prediction through its own weight",
        says={
            "holds": "What a word does to the prediction goes through its own weight.",
            "fails": "What a word does to the prediction does not go through its own weight.",
            "cannot tell": "Whether what a word does to the prediction goes through its own weight is not settled.",
            "hangs on": "Whether what a word does goes through its own weight hangs on how it is removed.",
        },
        measures="M = 1 − Σ (e_t − w_t)² / Σ e_t² of a text, cut at −1; the mean over texts, by specification",
        remark=(
            "M is 1 where zeroing a weight does what removing its word does, and 0 where weights do nothing: then "
            "attention is computed and not read."
        ),
    ),
    Test(
        name="ranks",
        label="orders words by effect (Γ)",
        question="Do weights order words by how much they matter to the prediction?",
        criterion="the Gini correlation Γ of attention with what words do is above {margin} in every specification",
        margin=0.7,
        partly=0.5,
        source="Schechtman & Yitzhaki 1987",
        experiments=("mediation",),
        statistic=f"{_HERE}:ranks",
        part="words",
        goals=("faithful",),
        says={
            "holds": "Its weights order words by how much they matter.",
            "fails": "Its weights do not order words by how much they matter.",
            "cannot tell": "Whether its weights order words by how much they matter is not settled.",
            "hangs on": "Whether its weights order words by how much they matter hangs on how a word is removed.",
        },
        measures="Γ(|e| | α): Kendall's coefficient with every pair of words weighted by the difference of its effects",
        remark="Ties among words that don't matter cost nothing; uniform and random weights score 0, the best order 1.",
    ),
    Test(
        name="carries",
        label="differences of weights count (F)",
        question="Do the differences of weights count, or would equal weights do?",
        criterion="what making weights equal does is above {margin} of what words do, in every specification",
        margin=0.2,
        source="Wiegreffe & Pinter 2019",
        experiments=("mediation",),
        statistic=f"{_HERE}:carries",
        part="weights",
        goals=("faithful",),
        says={
            "holds": "The differences of its weights count.",
            "fails": "Equal weights would do nearly as well: the differences of its weights do not count.",
            "cannot tell": "Whether the differences of its weights count is not settled.",
            "hangs on": "Whether the differences of its weights count hangs on how a word is removed.",
        },
        measures="F = min(1, |z(α) − z(flat)| / √Σ e_t²), z the log-odds, flat: weights made equal among words",
        remark=(
            "Sinks, special and null keys keep their weight. `used` shuffles weights, and so moves those of a sink "
            "onto words; F asks only whether words' weights differ to any effect."
        ),
    ),
    Test(
        name="locates",
        label="orders hidden states",
        question="Do weights order the states that the model pools by how much they matter?",
        criterion="the Gini correlation of attention with what its weights do is above {margin} in every specification",
        margin=0.7,
        source="Serrano & Smith 2019",
        experiments=("mediation",),
        statistic=f"{_HERE}:locates",
        part="weights",
        says={
            "holds": "Its weights say which states count.",
            "fails": "Its weights do not say which states count.",
            "cannot tell": "Whether its weights say which states count is not settled.",
            "hangs on": "Whether its weights say which states count hangs on the specification.",
        },
        measures="Γ(|w| | α), of what zeroing each weight does",
        remark="States are not words: in a recurrent network or a transformer each of them knows of others.",
    ),
    Test(
        name="supports",
        label="points to supporting words",
        question="Does most of the weight lie on words that hold the prediction up?",
        criterion="the share of attention on words whose removal does not raise the prediction is above {margin}",
        margin=0.5,
        source="Bastings & Filippova 2020",
        experiments=("mediation",),
        statistic=f"{_HERE}:supports",
        part="words",
        says={
            "holds": "Most of its weight lies on words that hold the prediction up.",
            "fails": "Most of its weight lies on words that hold the prediction back.",
            "cannot tell": "Whether most of its weight lies on words that hold the prediction up is not settled.",
            "hangs on": "Whether most of its weight holds the prediction up hangs on the specification.",
        },
        measures="1 − Σ α_t [e_t < 0] / Σ α_t, the mean over texts",
        chance="0.5",
        remark="Attention has no sign: where this fails, a *Yes* is one by size only.",
    ),
)
