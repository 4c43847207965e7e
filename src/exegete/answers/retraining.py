"""Retraining: what an audit of a model of Hugging Face leaves out, because others must be fine-tuned for it, and how to
ask it.

An audit of our own models trains the others that it needs, in seconds each. A fine-tuning takes minutes, so they are
asked for (`--retrain`), and until then are named with the command.
"""

from pathlib import Path

from exegete.base.files import read_json
from exegete.base.names import parse, vary
from exegete.experiments.tests import by_part
from exegete.models.settings import HUB
from exegete.runs.study import Study
from exegete.training.checkpoint import FACTS, is_checkpoint, is_language_model, is_of_hub, is_trained

RETRAINED = ("known_answer", "necessity", "seed_stability", "diagnostic", "adversary_training")  # experiments


def skipped_tests(study: Study) -> dict[str, str]:
    """Tests that need further fine-tunings and were not asked of a study's model, with what they ask, in words."""
    if not is_of_hub(study.models[0]):
        return {}
    left = set(RETRAINED) - set(study.built_experiments())
    return {test.name: test.words for test in by_part() if test.words and left & set(test.experiments)}


def retraining_note(study: Study) -> list[str]:
    """Tests that need further fine-tunings, as a sentence with the command that runs them."""
    tests = skipped_tests(study)
    if not tests:
        return []
    if is_language_model(study.models[0]):
        return [
            f"It can't be tested {', '.join(tests.values())}: that needs models trained anew, and a language model is "
            "asked as it is."
        ]
    command = f"exegete audit --task {study.tasks[0]} --model {trainable(study.models[0])} --retrain"
    return [f"It was not asked {', '.join(tests.values())}: that needs further fine-tunings (`{command}`)."]


def trainable(model: str) -> str:
    """A model that may be fine-tuned anew, by name: what a checkpoint of ours was made of, or a classifier further."""
    folder = Path(model if is_checkpoint(Path(model)) else parse(model).name.removeprefix(HUB))
    if is_checkpoint(folder):
        recipe = str(read_json(folder / FACTS, "checkpoint")["model"])
        return recipe if parse(recipe).settings.get("head", "own") != "own" else f"{HUB}{folder}:tune=true"
    return vary(model, tune="true") if is_trained(model) else model
