"""Skill: what is better than a guess, with rare classes, with texts of one class, and in translation."""

import math

import pytest
import torch

from exegete.models.build import build_model
from exegete.models.ours.translator import Translator
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from exegete.training.skill import Skill, skill_of_classes, skill_of_translations
from tests.models.small_translation import translation_task


def examples(*labels: int) -> list[Example]:
    return [Example(i, (("w",),), label) for i, label in enumerate(labels)]


def test_a_rare_class_that_is_never_named_may_be_known() -> None:
    """20 % positives, each of which is likelier than all others and yet under one half."""
    label = (torch.arange(100) % 5 == 0).long()
    positive = 0.1 + 0.3 * label + torch.linspace(0, 0.05, 100)
    found = skill_of_classes(torch.stack([1 - positive, positive], 1), label, [])
    assert float(positive.max()) < 0.5
    assert (found.measure, found.value, found.chance) == ("auc", 1.0, 0.5)
    assert not found.is_guess
    assert "AUC 1.000 [" in found.said


@pytest.mark.parametrize(("likely", "guess"), [(0.9, False), (0.8, True), (0.5, True)])
def test_texts_of_one_class_are_held_against_its_frequency(likely: float, guess: bool) -> None:
    """80 of 100 training texts have it."""
    share = likely + 0.01 * torch.linspace(-1, 1, 60).double()
    train = examples(*[0] * 79, *[1] * 19)
    found = skill_of_classes(torch.stack([share, 1 - share], 1), torch.zeros(60, dtype=torch.long), train)
    assert found.measure == "prior"
    assert found.value == pytest.approx(math.log(likely / 0.8), abs=1e-3)
    assert found.is_guess == guess


def test_what_has_no_number_is_a_guess_and_a_kept_one_is_read() -> None:
    assert Skill("auc", None, None, None, 0.5, 0).is_guess
    assert "no AUC" in Skill("auc", None, None, None, 0.5, 0).said
    found = Skill("auc", 0.8, 0.7, 0.9, 0.5, 100)
    assert Skill.read(found._asdict() | {"more": 1}) == found
    assert Skill("auc", 0.6, 0.5, 0.7, 0.5, 100).is_guess  # not surely above


@pytest.mark.slow
def test_a_translator_is_held_against_the_frequency_of_words() -> None:
    """Slowly: every word of the test targets with its share among those of training, each seen once more."""
    task = translation_task()
    model = build_model("translator:hidden=16,size=16", task)
    assert isinstance(model, Translator)
    train, test = task.split("train"), task.split("test")
    untrained = skill_of_translations(model, test, train)
    assert untrained.measure == "unigram"
    assert untrained.is_guess
    Fit(model, task, TrainingSettings(epochs=6, patience=6, lr=0.02, metric="loss", clip=1), 0).run()
    found = skill_of_translations(model, test, train)
    assert not found.is_guess

    def rows(example: Example) -> list[int]:
        return [*model.vocabulary.rows(example.texts[1]), END]

    seen = [row for example in train for row in rows(example)]
    share = {row: (seen.count(row) + 1) / (len(seen) + len(model.words)) for row in range(len(model.words))}
    of_words = [sum(-math.log(share[row]) for row in rows(e)) / len(rows(e)) for e in test]
    of_model = [evaluate(model, [example])["loss"] or 0.0 for example in test]
    gain = [a - b for a, b in zip(of_words, of_model, strict=True)]
    assert found.value == pytest.approx(sum(gain) / len(gain), abs=1e-5)
    assert found.n == len(test)
