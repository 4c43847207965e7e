"""Truths: the slow formula against whole passes, and families that are what their declarations say."""

from collections import Counter

import numpy as np
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.calibration.families import NAMES, draw, known
from exegete.calibration.truth import Arithmetic, Passes, Population, effects, effects_in_company, numbers
from exegete.measures.gini import gini_correlation
from exegete.models.capabilities import Pooling
from exegete.models.truths.families import FAMILIES, drawn
from exegete.models.truths.hand_set import HandSet, Wiring, moved
from exegete.tasks.vocabulary import SPECIAL, Vocabulary


@pytest.mark.parametrize("name", FAMILIES)
def test_plain_numbers_and_passes_are_the_same_model(name: str) -> None:
    truth = drawn(FAMILIES[name], 3)
    slow, passes = Arithmetic.of(truth.model), Passes(truth.model)
    for text in truth.task.split("population")[:4]:
        rows = np.array([truth.model.reader.rows(text.words)])
        for asked in ("odds", "attention", "odds_unweighted"):
            np.testing.assert_allclose(getattr(slow, asked)(rows), getattr(passes, asked)(rows), atol=1e-9)


@pytest.mark.parametrize("name", ["signed", "contextual", "off by one", "deep mixing"])
def test_effects_are_those_of_texts_without_each_word(name: str) -> None:
    truth = drawn(FAMILIES[name], 1)
    text = truth.task.split("population")[0].words
    e, _ = effects(Arithmetic.of(truth.model), np.array(truth.model.reader.rows(text)))

    def odds(words: tuple[str, ...]) -> float:
        from exegete.tasks.example import Example

        logits = truth.model.logits(truth.model.collate([Example(0, (words,), 0)]))[0]
        return float(logits[1] - logits[0])

    assert e.tolist() == pytest.approx([odds(text) - odds(text[:t] + text[t + 1 :]) for t in range(len(text))])


def test_what_a_null_key_takes_adds_up() -> None:
    """Within its room every word does what its weight says, whoever else is there."""
    truth = drawn(FAMILIES["signed"], 0)
    slow = Arithmetic.of(truth.model)
    wiring, table = truth.model.wiring, truth.model.embedding.weight
    assert wiring.room
    text = np.array(truth.model.reader.rows(truth.task.split("population")[0].words))
    e, w = effects(slow, text)
    gates = table[text, 0].sigmoid()
    assert float(gates.sum()) < wiring.room
    expected = (wiring.gain * gates / wiring.room * table[text, 1]).tolist()
    assert e.tolist() == pytest.approx(expected)
    assert w.tolist() == pytest.approx(expected)
    company, _ = effects_in_company(slow, text, np.random.default_rng(0), 5)
    assert company.tolist() == pytest.approx(expected)


def test_numbers_by_hand() -> None:
    class Given:
        def attention(self, texts: np.ndarray) -> np.ndarray:
            return np.array([[0.3, 0.6, 0.1]])

        def odds(self, texts: np.ndarray) -> np.ndarray:
            return np.array([-2.0])

        def odds_unweighted(self, texts: np.ndarray) -> np.ndarray:
            raise NotImplementedError

    e, w = np.array([-3.0, 1.0, 0.0]), np.array([-3.0, 0.0, 0.0])
    found = numbers(Given(), np.zeros(3, dtype=np.int64), e, w)
    assert found == pytest.approx((1 / 3, 0.9, 0.6))  # the second word speaks against the prediction
    own = gini_correlation(torch.tensor([0.3, 0.6, 0.1]), torch.from_numpy(abs(e)))
    assert found is not None
    assert found[0] == pytest.approx(float(own))
    assert numbers(Given(), np.zeros(3, dtype=np.int64), e / 10, w) is None  # nothing matters


@pytest.mark.parametrize(
    ("ranks", "reads", "truth"),
    [
        ([0.9, 0.85], [1.0, 0.4], "yes"), ([0.9, 0.75], [1.0, 1.0], "between"), ([0.9], [0.3], "between"),
        ([0.9, 0.9], [0.1, 0.0], "no"), ([0.4, -1.0], [1.0, 1.0], "no"), ([0.4, 0.6], [1.0, 1.0], "between"),
        ([], [], "between"),
    ],
)  # fmt: skip
def test_grades(ranks: list[float], reads: list[float], truth: str) -> None:
    assert Population(ranks, reads, 0.0).truth == truth


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_most_draws_of_a_family_are_what_it_declares(name: str) -> None:
    found = Counter(draw(name, number).graded(4).truth for number in range(4))
    assert found[FAMILIES[name].known] >= 3
    assert set(found) <= {FAMILIES[name].known, "between"}


def test_a_copy_that_is_not_read_ranks_well_and_moves_nothing() -> None:
    found = draw("unread copy", 1).graded(4)
    assert min(found.ranks) > 0.6
    assert max(found.reads) == 0


def test_what_holds_a_prediction_back_is_known_as_such() -> None:
    assert draw("held back", 0).graded(4).opposed > 0.5 > draw("sharp cue", 0).graded(4).opposed


def test_draws_differ_and_are_the_same_again() -> None:
    one, again, other = draw("graded", 0), draw("graded", 0), draw("graded", 1)
    assert one.model.fingerprint() == again.model.fingerprint() != other.model.fingerprint()
    assert one.task.hash == again.task.hash != other.task.hash


def test_a_task_has_unknown_words_both_classes_and_wrong_labels() -> None:
    found = drawn(FAMILIES["signed"], 2)
    model, train = found.model, found.task.split("train")
    assert any(not model.reader.knows(word) for text in train for word in text.words)
    said = model.logits(model.collate(train)).argmax(-1)
    wrong = sum(int(c) != e.label for c, e in zip(said, train, strict=True)) / len(train)
    assert 0 < wrong < 0.2
    assert {e.label for e in train} == {0, 1}


def test_a_hand_set_model_fulfils_the_contract_and_pads_without_a_trace() -> None:
    found = drawn(FAMILIES["contextual"], 0)
    assert isinstance(found.model, Pooling)
    some = found.task.split("test")[:12]
    together = found.model.logits(found.model.collate(some))
    alone = torch.cat([found.model.logits(found.model.collate([text])) for text in some])
    torch.testing.assert_close(together, alone)


def test_a_ceiling_is_never_passed() -> None:
    table = torch.zeros(len(SPECIAL) + 1, 3)
    table[-1, 1] = 100.0
    model = HandSet("truth", Vocabulary(("a",)), table, Wiring(ceiling=2.0))
    from exegete.tasks.example import Example

    assert model.logits(model.collate([Example(0, (("a", "a"),), 1)]))[0].tolist() == pytest.approx([-1.0, 1.0])


def test_moving_leaves_a_gap() -> None:
    assert moved(torch.tensor([[1.0, 2.0, 3.0]]), 2).tolist() == [[0.0, 0.0, 1.0]]
    assert moved(torch.tensor([[1.0, 2.0]]), 0).tolist() == [[1.0, 2.0]]


def test_a_family_that_is_not_there_is_refused() -> None:
    assert known("ladder at 1") in NAMES
    with pytest.raises(UsageError, match="family of truths"):
        known("ladder")
