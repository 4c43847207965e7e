"""Models that guess have nothing to explain, whatever the numbers; rare classes are no guess."""

import random
from pathlib import Path

import pytest

from exegete.answers.audit import audit_study
from exegete.answers.scorecard import Audit
from exegete.runs.engine.local import LocalEngine
from exegete.runs.study import Study, check_study
from tests.studied import BAD, GOOD, PLAIN, undrawn

pytestmark = pytest.mark.slow

__all__ = ["undrawn"]  # a fixture, found by its name


def reviews(path: Path, positives: float, honest: bool, n: int = 700) -> str:
    """Texts with a good or a bad word; the labels are theirs, or dealt out at random."""
    draw = random.Random(0)
    good = [draw.random() < positives for _ in range(n)]
    labels = good if honest else draw.sample(good, n)
    lines = ["text,label"]
    for i, (kind, label) in enumerate(zip(good, labels, strict=True)):
        words = [draw.choice(PLAIN) for _ in range(draw.randint(3, 7))]
        words[draw.randrange(len(words))] = draw.choice(GOOD if kind else BAD)
        lines.append(f"{' '.join(words)} {i},{'good' if label else 'bad'}")
    path.write_text("\n".join(lines) + "\n")
    return f"file:{path}:tokenizer=whitespace,min_df=2"


def audited(task: str, out: Path, lr: float) -> tuple[Audit, list[str]]:
    """A small model's audit, and what was said while it ran."""
    study = Study.model_validate(
        {
            "name": "small", "tasks": [task], "models": ["bilstm:size=8,hidden=8"], "seeds": [0],
            "training": {"epochs": 3, "lr": lr},
            "experiments": [
                {"name": "permutation", "draws": 5},
                {"name": "mediation", "methods": ["attention"], "choose_on": ""},
            ],
        }
    )  # fmt: skip
    listener = Listener()
    found = audit_study(check_study(study), out, engine=LocalEngine(1), progress=listener)
    return found, listener.heard


class Listener:
    """Hears sentences, and how many stages were there when the first was said."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.labels: list[str] = []

    def __call__(self, label: str, done: int, total: int) -> None:
        self.labels.append(label)

    def say(self, sentence: str) -> None:
        assert not any("mediation" in label for label in self.labels)  # before anything is asked
        if not sentence.startswith("the texts of"):  # the table of the data check
            self.heard.append(sentence)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("honest", "lr"), [(False, 0.02), (True, 1e-9)], ids=["shuffled labels", "untrained"])
def test_what_guesses_gets_no_yes_or_no_and_says_so_at_once(tmp_path: Path, honest: bool, lr: float) -> None:
    found, heard = audited(reviews(tmp_path / "reviews.csv", 0.5, honest), tmp_path / "run", lr)
    ((where, decision),) = found.decisions.items()
    assert decision.answer == "undecided"
    assert decision.gamma is None
    assert "may only guess (AUC 0." in decision.why
    assert {test.verdict for test in found.tests} == {"cannot tell"}
    (said,) = heard
    assert "may only guess (AUC 0." in said
    assert where[1] in said


@pytest.mark.usefixtures("undrawn")
def test_one_positive_in_five_is_no_guess(tmp_path: Path) -> None:
    found, heard = audited(reviews(tmp_path / "reviews.csv", 0.2, honest=True), tmp_path / "run", 0.02)
    ((_, decision),) = found.decisions.items()
    assert "guess" not in decision.why
    assert "Attention goes" in decision.why
    assert heard == []
