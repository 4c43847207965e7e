"""The omission family: each method against texts that are erased by hand, and windows against their definition."""

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.importance.erasure import Removal
from exegete.importance.omission import word_windows
from exegete.tasks.example import Example
from tests.importance.test_erasure import by_hand
from tests.small import SPECS, batch_of, small_model, texts

METHODS: tuple[tuple[str, Removal], ...] = (
    ("leave_one_out", "delete"),
    ("occlusion", "zero"),
    ("replacement", "unknown"),
)


@pytest.mark.parametrize("of", ["logit", "probability", "tvd"])
@pytest.mark.parametrize(("name", "by"), METHODS)
def test_a_score_is_what_the_prediction_loses_without_the_word(name: str, by: Removal, of: str) -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples, wrap=True)
    batch = batch_of(model, examples)
    scores = IMPORTANCES.make(f"{name}:of={of}")(model, batch)
    assert scores.signed == (of != "tvd")
    assert torch.equal(scores.values.isnan(), ~batch.words)
    for i, e in enumerate(examples):
        n = len(e)
        whole, *without = by_hand(model, [(e, [s == t for s in range(n)]) for t in range(-1, n)], by)
        c = int(whole.argmax())
        assert int(scores.target.label[i]) == c
        expected = []
        for left in without:
            p, q = (whole, left) if of == "logit" else (whole.softmax(-1), left.softmax(-1))
            expected.append(float((p - q).abs().sum() / 2 if of == "tvd" else p[c] - q[c]))
        assert scores.values[i, batch.words[i]].tolist() == pytest.approx(expected, abs=5e-6)
        assert scores.cost is not None
        assert int(scores.cost.forward[i]) == n + 1


@pytest.mark.parametrize(("name", "by"), METHODS)
@pytest.mark.parametrize("window", [2, 3, 20])
def test_a_score_is_the_mean_over_the_windows_that_hold_the_word(name: str, by: Removal, window: int) -> None:
    examples = texts(6)
    model = small_model(SPECS[5], examples).double()
    scores = IMPORTANCES.make(f"{name}:of=logit,window={window}")(model, batch_of(model, examples))
    for i, e in enumerate(examples):
        n, c = len(e), int(scores.target.label[i])
        starts = range(max(1, n - window + 1))
        masks = [[False] * n] + [[s <= t < s + window for t in range(n)] for s in starts]
        whole, *without = by_hand(model, [(e, mask) for mask in masks], by)[:, c].tolist()
        for t in range(n):
            holding = [whole - without[s] for s in starts if s <= t < s + window]
            assert float(scores.values[i, t]) == pytest.approx(sum(holding) / len(holding), abs=1e-9)
        assert scores.cost is not None
        assert int(scores.cost.forward[i]) == len(starts) + 1


def test_windows_stay_in_the_explained_text() -> None:
    parts = (("a", "b", "c"), ("d",), ("e", "f"))
    found_in = {0: [["a", "b"], ["b", "c"]], 1: [["d"]], 2: [["e", "f"]]}
    for wrap in (False, True):
        for explained, expected in found_in.items():
            example = Example(0, parts, 0, explained=explained)
            batch = batch_of(small_model(SPECS[0], texts(9), wrap), [example])
            rows, gone = word_windows(batch, 2)
            assert not (gone & ~batch.words).any()
            found = [[word for word, out in zip(example.words, g, strict=True) if out] for g in gone[:, batch.words[0]]]
            assert found == expected
            assert rows.tolist() == [0] * len(expected)


def test_replacing_an_unknown_word_changes_exactly_nothing() -> None:
    model = small_model(SPECS[0], texts(9))
    batch = batch_of(model, [Example(0, (("a", "never seen", "b"),), 0)])
    values = IMPORTANCES.make("replacement")(model, batch).values[0]
    assert values[1] == 0
    assert (values[[0, 2]] != 0).all()


def test_a_given_target_wins_over_the_setting() -> None:
    examples = texts(5, classes=3)
    model = small_model(SPECS[2], examples, labels=("x", "y", "z"))
    batch = batch_of(model, examples)
    target = Target(torch.full((5,), 2), of="probability")
    given = IMPORTANCES.make("occlusion:of=logit")(model, batch, target)
    assert torch.equal(given.target.label, target.label)
    own = IMPORTANCES.make("occlusion:of=probability")(model, batch, Target(torch.full((5,), 2), of="probability"))
    assert torch.equal(given.values[batch.words], own.values[batch.words])


@pytest.mark.parametrize("name", [name for name, _ in METHODS])
def test_a_window_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="window of 1 or more"):
        IMPORTANCES.make(f"{name}:window=0")
