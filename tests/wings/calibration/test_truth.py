"""Truths: the slow formula against whole passes, and families that are what their declarations say."""

import math
from collections import Counter
from typing import cast

import numpy as np
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.measures.gini import gini_correlation
from exegete.models.capabilities import Pooling
from exegete.models.truths.classifier import HandSet, Wiring, shift_right
from exegete.models.truths.families import FAMILIES, draw_family
from exegete.tasks.vocabulary import SPECIAL, Vocabulary
from exegete.wings.calibration.families import NAMES, check_family, draw_truth
from exegete.wings.calibration.truth import (
    Arithmetic,
    Passes,
    Population,
    effects_in_company,
    idle,
    true_effects,
    truth_numbers,
)


@pytest.mark.parametrize("name", FAMILIES)
def test_plain_numbers_and_passes_are_the_same_model(name: str) -> None:
    truth = draw_family(FAMILIES[name], 3)
    slow, passes = Arithmetic.of(truth.model), Passes(truth.model)
    for text in truth.task.split("population")[:4]:
        rows = np.array([truth.model.reader.rows(text.words)])
        for asked in ("odds", "attention", "odds_unweighted"):
            np.testing.assert_allclose(getattr(slow, asked)(rows), getattr(passes, asked)(rows), atol=1e-9)
        for kept in (np.zeros(rows.shape, dtype=bool), np.arange(rows.shape[1])[None] % 3 == 0):
            np.testing.assert_allclose(slow.odds_flat(rows, kept), passes.odds_flat(rows, kept), atol=1e-9)


@pytest.mark.parametrize("name", ["signed", "contextual", "off by one", "deep mixing"])
def test_effects_are_those_of_texts_without_each_word(name: str) -> None:
    truth = draw_family(FAMILIES[name], 1)
    text = truth.task.split("population")[0].words
    e, _ = true_effects(Arithmetic.of(truth.model), np.array(truth.model.reader.rows(text)))

    def odds(words: tuple[str, ...]) -> float:
        from exegete.tasks.example import Example

        logits = truth.model.logits(truth.model.collate([Example(0, (words,), 0)]))[0]
        return float(logits[1] - logits[0])

    assert e.tolist() == pytest.approx([odds(text) - odds(text[:t] + text[t + 1 :]) for t in range(len(text))])


def test_what_a_null_key_takes_adds_up() -> None:
    """Within its room every word does what its weight says, whoever else is there."""
    truth = draw_family(FAMILIES["signed"], 0)
    slow = Arithmetic.of(truth.model)
    wiring, table = truth.model.wiring, truth.model.embedding.weight
    assert wiring.room
    text = np.array(truth.model.reader.rows(truth.task.split("population")[0].words))
    e, w = true_effects(slow, text)
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

        def odds_flat(self, texts: np.ndarray, kept: np.ndarray) -> np.ndarray:
            assert not kept.any()
            return np.array([-1.5])

    e, w = np.array([-3.0, 1.0, 0.0]), np.array([-3.0, 0.0, 0.0])
    found = truth_numbers(Given(), np.zeros(3, dtype=np.int64), e, w)
    assert found == pytest.approx((1 / 3, 0.9, 0.5 / 10**0.5, 0.6))  # the second word speaks against the prediction
    own = gini_correlation(torch.tensor([0.3, 0.6, 0.1]), torch.from_numpy(abs(e)))
    assert found is not None
    assert found[0] == pytest.approx(float(own))
    assert truth_numbers(Given(), np.zeros(3, dtype=np.int64), e / 10, w) is None  # nothing matters


@pytest.mark.parametrize(
    ("ranks", "reads", "carries", "truth", "grounds"),
    [
        ([0.9, 0.85], [1.0, 0.4], [0.9, 0.31], "strong", ()), ([0.9, 0.75], [1.0, 1.0], [1.0, 1.0], "between", ()),
        ([0.9], [0.3], [1.0], "between", ()), ([0.9], [1.0], [0.25], "between", ()),
        ([0.54, 0.66], [0.4, 1.0], [0.4, 1.0], "partly", ()), ([0.54, 0.68], [1.0, 1.0], [1.0, 1.0], "between", ()),
        ([0.5, 0.6], [1.0, 1.0], [1.0, 1.0], "between", ()), ([0.6], [0.3], [1.0], "between", ()),
        ([0.9, 0.9], [0.1, 0.0], [1.0, 1.0], "unread", ("unread",)),
        ([0.9], [0.1], [0.1], "unread", ("unread", "flat")),
        ([0.4, -1.0], [1.0, 1.0], [1.0, 1.0], "hardly", ("hardly",)), ([0.9], [1.0], [0.1], "flat", ("flat",)),
        ([0.4, 0.6], [1.0, 1.0], [1.0, 1.0], "between", ()), ([0.9, 0.9], [1.0, 1.0], [0.1, 0.2], "between", ()),
        ([0.4], [0.1], [0.1], "hardly", ("hardly", "unread", "flat")), ([], [], [], "between", ()),
    ],
)  # fmt: skip
def test_grades(
    ranks: list[float], reads: list[float], carries: list[float], truth: str, grounds: tuple[str, ...]
) -> None:
    found = Population(ranks, reads, carries, 0.0)
    assert (found.truth, found.grounds) == (truth, grounds)


def test_a_word_is_idle_if_it_has_much_weight_and_does_nothing() -> None:
    e = np.array([1.0, 0.04, 0.06, 0.0])
    assert idle(np.array([0.0, 0.6, 0.0, 0.4]), e).tolist() == [False, True, False, False]  # of .5 and more
    assert idle(np.array([0.0, 0.0, 0.6, 0.4]), e).tolist() == [False] * 4


@pytest.mark.parametrize("name", ["graded", "flat copy with a special sink", "graded copy with an idle word"])
def test_flat_weights_one_by_one(name: str) -> None:
    """F of a text, word by word from the drawn table: with softmax, a null key, and a key that is no word."""
    truth = draw_family(FAMILIES[name], 2)
    wiring, table = truth.model.wiring, truth.model.embedding.weight.tolist()
    text = truth.model.reader.rows(truth.task.split("population")[1].words)

    def weights(rows: list[int]) -> list[float]:
        scores = [table[row][0] for row in rows]
        if wiring.room:
            gates = [1 / (1 + math.exp(-score)) for score in scores]
            return [gate / max(wiring.room, sum(gates)) for gate in gates]
        total = sum(map(math.exp, scores)) + (0 if wiring.special is None else math.exp(wiring.special))
        return [math.exp(score) / total for score in scores]

    def odds(rows: list[int], alpha: list[float]) -> float:
        return float(wiring.gain * sum(a * table[row][1] for a, row in zip(alpha, rows, strict=True)))

    own, n = weights(text), len(text)
    e = [odds(text, own) - odds(rest, weights(rest)) for t in range(n) for rest in [text[:t] + text[t + 1 :]]]
    largest = max(map(abs, e))
    rests = [own[t] > 2 / n and abs(e[t]) < 0.05 * largest for t in range(n)]
    assert any(rests) == name.endswith("idle word")
    free = [own[t] for t in range(n) if not rests[t]]
    flat = [own[t] if rests[t] else sum(free) / len(free) for t in range(n)]
    expected = abs(odds(text, own) - odds(text, flat)) / math.sqrt(sum(x * x for x in e))
    found = truth_numbers(Arithmetic.of(truth.model), np.array(text), np.array(e), np.array(e))
    assert found is not None
    assert found.carries == pytest.approx(min(1.0, expected))


def test_a_sink_that_is_not_kept_makes_flat_weights_look_carried() -> None:
    """What F of a flat copy would be if an idle word, or a key that is no word, gave its weight to all words."""
    truth = draw_truth("flat copy with an idle word", 0)
    told = Arithmetic.of(cast(HandSet, truth.model))
    kept, spread = [], []
    for text in map(np.array, truth.texts[:60]):
        e, w = true_effects(told, text)
        found = truth_numbers(told, text, e, w)
        if found is not None:
            kept.append(found.carries)
            apart = told.odds(text[None]) - told.odds_flat(text[None], np.zeros((1, len(text)), dtype=bool))
            spread.append(min(1.0, float(abs(apart[0]) / np.sqrt((e**2).sum()))))
    assert np.mean(kept) < 0.03
    assert np.mean(spread) > 0.5


@pytest.mark.parametrize(("name", "share"), [("special sink", 0.5), ("null key", 0.5), ("idle word", 0.2)])
def test_a_sink_takes_much_of_the_weight(name: str, share: float) -> None:
    """A special or a null key takes what words don't have, an idle word takes it as the last of them."""
    for number in range(4):
        truth = draw_truth(f"flat copy with a{'n' if name[0] == 'i' else ''} {name}", number)
        texts = [np.array([text]) for text in truth.texts[:20]]
        weights = [Arithmetic.of(cast(HandSet, truth.model)).attention(text)[0] for text in texts]
        sinks = [own[-1] if name == "idle word" else 1 - own.sum() for own in weights]
        assert np.mean(sinks) > share
        assert all(len(set(own[:-1].round(2))) == 1 for own in weights)  # all words alike


def test_a_start_symbol_is_one_kind_of_key() -> None:
    with pytest.raises(ValueError, match="not both"):
        Wiring(room=2, special=0.0)


def test_words_that_act_do_what_was_drawn_whatever_their_weights() -> None:
    """Backward cues have the least weight of their texts, and as much effect as any other cue."""
    truth = draw_family(FAMILIES["backward cues"], 0)
    told, cues = Arithmetic.of(truth.model), range(len(SPECIAL), len(SPECIAL) + 80)
    effect: dict[bool, list[float]] = {True: [], False: []}
    for words in truth.task.split("population"):
        text = np.array(truth.model.reader.rows(words.words))
        (cue,) = [place for place, row in enumerate(text) if row in cues]
        weights = told.attention(text[None])[0]
        assert weights[cue] in (weights.min(), weights.max())
        effect[bool(weights[cue] == weights.min())].append(abs(true_effects(told, text)[0][cue]))
    assert np.mean(effect[True]) == pytest.approx(np.mean(effect[False]))
    assert 0.1 < len(effect[True]) / 300 < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_most_draws_of_a_family_are_what_it_declares(name: str) -> None:
    graded = [draw_truth(name, number).graded(4) for number in range(4)]
    found = Counter("no" if each.grounds else each.truth for each in graded)
    assert found[FAMILIES[name].known] >= 3
    assert set(found) <= {FAMILIES[name].known, "between"}


def test_a_copy_that_is_not_read_ranks_well_and_moves_nothing() -> None:
    found = draw_truth("unread copy", 1).graded(4)
    assert min(found.ranks) > 0.6
    assert max(found.reads) == 0
    assert max(found.carries) == 0


@pytest.mark.parametrize("name", [name for name in FAMILIES if " copy" in name and "unread" not in name])
def test_copies_that_are_nearly_flat_fool_both_other_tests(name: str) -> None:
    found = draw_truth(name, 0).graded(4)
    assert found.grounds == ("flat",)
    assert min(found.ranks) > 0.6
    assert min(found.reads) > 0.9


def test_what_holds_a_prediction_back_is_known_as_such() -> None:
    assert draw_truth("held back", 0).graded(4).opposed > 0.5 > draw_truth("sharp cue", 0).graded(4).opposed


def test_draws_differ_and_are_the_same_again() -> None:
    one, again, other = draw_truth("graded", 0), draw_truth("graded", 0), draw_truth("graded", 1)
    assert one.model.fingerprint() == again.model.fingerprint() != other.model.fingerprint()
    assert one.task.hash == again.task.hash != other.task.hash


def test_a_task_has_unknown_words_both_classes_and_wrong_labels() -> None:
    found = draw_family(FAMILIES["signed"], 2)
    model, train = found.model, found.task.split("train")
    assert any(not model.reader.knows(word) for text in train for word in text.words)
    said = model.logits(model.collate(train)).argmax(-1)
    wrong = sum(int(c) != e.label for c, e in zip(said, train, strict=True)) / len(train)
    assert 0 < wrong < 0.2
    assert {e.label for e in train} == {0, 1}


def test_a_hand_set_model_fulfils_the_contract_and_pads_without_a_trace() -> None:
    found = draw_family(FAMILIES["contextual"], 0)
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
    assert shift_right(torch.tensor([[1.0, 2.0, 3.0]]), 2).tolist() == [[0.0, 0.0, 1.0]]
    assert shift_right(torch.tensor([[1.0, 2.0]]), 0).tolist() == [[1.0, 2.0]]


def test_a_family_that_is_not_there_is_refused() -> None:
    assert check_family("ladder at 1") in NAMES
    with pytest.raises(UsageError, match="family of truths"):
        check_family("ladder")
