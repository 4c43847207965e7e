"""How faithfulness is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "comprehensiveness = mean over q of p_c(x) − p_c(x without its ⌈qT⌉ first words), c being the class that is "
        "predicted for the whole text x of T words."
    ),
    misleads=(
        "A text without its words is unlike all that the model has learnt from, so believe only what another way to "
        "remove words confirms. Methods that score words by removing them nearly optimise the measure, and don't "
        "compete for the best."
    ),
    page="concepts/faithfulness.md",
    title="Faithfulness: words that the prediction hangs on",
)

TESTS = (
    Test(
        name="beats_random",
        label="top words beat random",
        question=(
            "Does removing the words that attention ranks first change the prediction more than removing random words?"
        ),
        criterion="comprehensiveness (AOPC, mean over removals) is above that of random words by more than {margin}",
        margin=0.0,
        source="DeYoung et al. 2020",
        experiments=("faithfulness",),
        statistic="exegete.experiments.faithfulness.statistics:beats_random",
        part="words",
        bound=2.0,
        purpose="Which words mattered",
        says={
            "holds": "removing the words that it ranks first changes the prediction more than removing random words",
            "fails": "removing the words that it ranks first changes the prediction no more than removing random words",
            "cannot tell": (
                "whether removing its first words changes the prediction more than random ones is not settled"
            ),
        },
        measures=(
            "comprehensiveness (AOPC over 1, 5, 10, 20, 50 % of the words; the mean of three ways to remove a word) "
            "of attention's words, minus that of random words"
        ),
        remark="A low bar: it says that attention is not noise.",
    ),
    Test(
        name="faithful",
        label="matches the best method",
        question="Does it change the prediction nearly as much as with the best method, chosen on other texts?",
        criterion=(
            "comprehensiveness (AOPC, mean over removals) is at most {margin} below that of the best method that "
            "does not erase words"
        ),
        margin=0.05,
        source="Bastings & Filippova 2020",
        experiments=("faithfulness",),
        statistic="exegete.experiments.faithfulness.statistics:faithful",
        part="words",
        within=True,
        bound=2.0,
        words="whether the words that it ranks first matter for the prediction",
        says={
            "holds": (
                "; with {against}, the best method on the texts held out for choosing it, it changes hardly more, if "
                "at all."
            ),
            "fails": (
                "; with {against}, the best method on the texts held out for choosing it, it changes clearly more."
            ),
            "cannot tell": "; how it compares with {against}, the best method on held-out texts, is not settled.",
            "doubt": ": {doubt}.",
        },
        measures=(
            "comprehensiveness of attention's words, minus that of the best other method's; the best is chosen on "
            "other texts, among methods that don't erase words as the evaluation does"
        ),
        chance="random words' comprehensiveness minus the best method's",
        remark=(
            "Where even the best method's words hardly matter, nothing can be told, and it says so. Attention has no "
            "sign, so words against the class may come first: `faithful_by_size` takes the sign from all. It does not "
            "hold even for models that are faithful by construction, for the same reason."
        ),
    ),
    Test(
        name="faithful_by_size",
        label="matches the best method (ignoring sign)",
        question="Does it, if all methods rank words by the size of their scores? (Attention has no sign.)",
        criterion=(
            "comprehensiveness, with every method's words ranked by |score|, is at most {margin} below that of the "
            "best method, chosen so"
        ),
        margin=0.05,
        source="Bastings & Filippova 2020",
        experiments=("faithfulness",),
        statistic="exegete.experiments.faithfulness.statistics:faithful_by_size",
        part="words",
        within=True,
        bound=2.0,
        says={
            "holds": " By size, without the sign, it finds words that matter at least about as well as {against}.",
            "fails": " By size, without the sign, {against} finds words that matter clearly better.",
            "cannot tell": "",
        },
        explains={
            "holds": (
                " That is for the sign: by size alone it finds words that matter at least about as well as {against}, "
                "but not which class they speak for."
            ),
            "fails": " That is not for the sign alone: by size, too, {against} finds words that matter clearly better.",
            "cannot tell": " How much of that is the sign is not settled: by size alone the best is {against}.",
        },
        measures="the same, with every method's words ranked by |score|, and the best method chosen so",
        chance="as for `faithful`",
        remark=(
            "It tells how much of a failure of `faithful` is the missing sign: on models that are faithful by "
            "construction it holds in 3 of 3 trainings, `faithful` in none."
        ),
    ),
    Test(
        name="sufficient",
        label="top words suffice like the best’s",
        question="Are the words that attention ranks first enough for the prediction, nearly as with the best method?",
        criterion=(
            "what the probability loses with these words alone (sufficiency, AOPC) is at most {margin} above the "
            "best method's"
        ),
        margin=0.05,
        source="DeYoung et al. 2020",
        experiments=("faithfulness",),
        statistic="exegete.experiments.faithfulness.statistics:sufficient",
        part="words",
        within=True,
        bound=2.0,
        purpose="Which words are enough",
        says={
            "holds": "the words that it ranks first keep the prediction at least about as well as those of {against}.",
            "fails": "the words that it ranks first keep clearly less of the prediction than those of {against}.",
            "cannot tell": "how the words that it ranks first compare with those of {against} is not settled.",
            "doubt": "nothing can be told, for {doubt}.",
        },
        measures=(
            "what the probability loses with the best method's first words alone, minus what it loses with "
            "attention's (sufficiency, AOPC)"
        ),
        chance="the best method's sufficiency minus that of random words",
        remark=(
            "Words that are enough need not be words that are needed: a prediction may have two reasons. It answers "
            "the purpose *which words are enough*."
        ),
    ),
)
