"""Saying: what the tests that put other weights in the place of attention found, in plain words."""

from collections.abc import Mapping

from exegete.audits.scorecard import SEEDS_FOR_A_RECIPE, Test, Verdict

SAID: dict[str, dict[Verdict, str]] = {
    "used": {
        "holds": "The prediction does depend on which word carries which weight: shuffling the weights changes it.",
        "fails": "The prediction hardly depends on which word carries which weight: shuffling them changes little.",
        "cannot tell": "How much the prediction depends on which word carries which weight is not settled.",
    },
    "ranks_decisions": {
        "holds": "Removing weights from the largest on flips decisions clearly sooner than in random order.",
        "fails": "Removing weights from the largest on flips decisions hardly sooner than in random order.",
        "cannot tell": "Whether removing weights from the largest on flips decisions sooner than in random order is "
        "not settled.",
    },
    "unique": {
        "holds": "Other weights with the same prediction are no easier to find than in a model that is faithful by "
        "construction.",
        "fails": "Very different weights with the same prediction can be found, more easily than in a model that is "
        "faithful by construction; that alone does not speak against reading these.",
        "cannot tell": "Whether very different weights with the same prediction are easier to find than in a model "
        "that is faithful by construction is not settled.",
    },
    "needed": {
        "holds": "Trained with uniform weights the model predicts worse: attention is needed for this task.",
        "fails": "Trained with uniform weights the model predicts as well: this task does not need attention.",
        "cannot tell": "attention is needed",
    },
    "stable": {
        "holds": "Models that differ by seed attend to much the same words.",
        "fails": "Models that differ only by seed attend to different words.",
        "cannot tell": "it is stable over seeds",
    },
    "informative": {
        "holds": "The weights help a model that sees single words: they carry something that was learnt.",
        "fails": "The weights do not help a model that sees single words.",
        "cannot tell": "its weights help a model of single words",
    },
    "hard_to_fake": {
        "holds": "No model could be trained to predict the same with very different weights.",
        "fails": "A model could be trained to predict the same with very different weights.",
        "cannot tell": "it is hard to fake",
    },
}
CHECKPOINT = ("used", "ranks_decisions", "unique")  # the others are about a way of training


def sayings(named: Mapping[str, Test]) -> list[str]:
    """Sentences on the tests that were asked; those that few seeds leave open share one."""
    asked = [name for name in SAID if name in named]
    open_ = [name for name in asked if name not in CHECKPOINT and named[name].verdict == "cannot tell"]
    said = [SAID[name][named[name].verdict] for name in asked if name not in open_]
    if not open_:
        return said
    listed = listed_in_words([SAID[name]["cannot tell"] for name in open_])
    return [*said, f"Whether {listed} is not settled here; a claim about training needs {SEEDS_FOR_A_RECIPE} seeds."]


def listed_in_words(parts: list[str]) -> str:
    """Parts of a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
