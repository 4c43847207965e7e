"""Generation: a wide beam finds what enumerating every output finds; a beam of one place is greedy."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.permute import Permute
from exegete.interventions.random import Random
from exegete.models.contract import Intervention
from exegete.models.ours.generation import Written, beam, greedy
from exegete.models.ours.recurrent_translator import RecurrentTranslator
from exegete.models.ours.translator import Translator
from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, PAD, START, UNKNOWN
from tests.models.small_translation import BAHDANAU, LUONG, sentences, small_translator

# Two words in two languages: with the unknown word, five may follow every word.
TINY = tuple(Example(i, texts, 0) for i, texts in enumerate([(("a", "b"), ("x",)), (("b",), ("y", "x")), (("a",), ())]))
EXAMPLES = sentences(9)
# With so much more for the end symbol, some targets of these models end by themselves and others don't.
ENDING = {"translator:hidden=16,size=16,scale=1": 2.0, "translator:hidden=16,size=16,scale=1,attention=luong": 6.0}


@torch.no_grad()
def log_p(
    model: Translator, source: tuple[str, ...], rows: list[int], intervene: Intervention | None, id: int
) -> float:
    """log p of a whole target and its end, by teacher forcing."""
    words = (*model.vocabulary.words,)
    special = {UNKNOWN: "never seen"}
    target = tuple(special.get(row) or words[row - 4] for row in rows)
    batch = collate([Example(id, (source, target), 0)], model.vocabulary)
    logp = model.trace(batch, intervene=intervene).logits[0].double().log_softmax(-1)
    return sum(float(logp[step, row]) for step, row in enumerate([*rows, END]))


def enumerated(model: Translator, example: Example, longest: int, alpha: float) -> tuple[list[int], float]:
    """The best of all outputs of at most `longest` words: log p / ((5 + n) / 6)^α, n with the end symbol."""
    allowed = [row for row in range(len(model.vocabulary)) if row not in (PAD, START, END)]
    best: tuple[float, list[int], float] = (-math.inf, [], -math.inf)
    for length in range(longest + 1):
        for rows in itertools.product(allowed, repeat=length):
            logp = log_p(model, example.texts[0], list(rows), None, example.id)
            best = max(best, (logp / ((6 + length) / 6) ** alpha, list(rows), logp))
    return best[1], best[2]


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_a_wide_beam_is_exhaustive(alpha: float) -> None:
    """All outputs of up to two words; the slow test does four."""
    check_exhaustive(BAHDANAU, alpha, 2, TINY[:2])


@pytest.mark.slow
@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
def test_a_wide_beam_is_exhaustive_up_to_four_words(spec: str) -> None:
    check_exhaustive(spec, 1.0, 4, TINY[1:2])


def check_exhaustive(spec: str, alpha: float, longest: int, examples: tuple[Example, ...]) -> None:
    model = small_translator(spec, TINY).double()
    more(model, {END: -2.0, UNKNOWN: 1.0})  # so that the best is not the empty output
    width = 6 ** (longest + 1)  # a place for every continuation
    found = beam(model, collate(examples, model.vocabulary), width, alpha, longest=longest)
    for example, rows, logp in zip(examples, found.rows, found.logp.tolist(), strict=True):
        best, expected = enumerated(model, example, longest, alpha)
        assert rows == best
        assert logp == pytest.approx(expected, abs=1e-5)
    assert bool(found.ended.all())


def by_hand(
    model: Translator, example: Example, longest: int, intervene: Intervention | None
) -> tuple[list[int], bool]:
    """argmax of the last step, again and again, by teacher forcing."""
    rows: list[int] = []
    names = ("", "", "", "", *model.vocabulary.words)
    while True:
        batch = collate([Example(example.id, (example.texts[0], tuple(names[r] for r in rows)), 0)], model.vocabulary)
        logits = model.trace(batch, intervene=intervene).logits[0, -1]
        logits[[PAD, START]] = -torch.inf
        word = int(logits.argmax())
        if word == END or len(rows) == longest:
            return rows, word == END
        rows.append(word)


@torch.no_grad()
def more(model: Translator, logits: dict[int, float]) -> Translator:
    """Make some words likelier."""
    assert isinstance(model, RecurrentTranslator)
    for row, extra in logits.items():
        model.bias[row] += extra
    return model


def ending(spec: str = next(iter(ENDING))) -> Translator:
    return more(small_translator(spec, EXAMPLES).double(), {END: ENDING[spec], UNKNOWN: -100.0})


@pytest.mark.parametrize("spec", ENDING)
@pytest.mark.parametrize("intervene", [None, Random(seed=2)])
def test_greedy_takes_the_likeliest_word(spec: str, intervene: Intervention | None) -> None:
    model = ending(spec)
    found = greedy(model, collate(EXAMPLES, model.vocabulary), intervene)
    with torch.no_grad():
        expected = [by_hand(model, e, 2 * len(e) + 10, intervene) for e in EXAMPLES]
    assert found.rows == [rows for rows, _ in expected]
    assert found.ended.tolist() == [ended for _, ended in expected]
    assert len({tuple(rows) for rows in found.rows}) > 5
    assert 2 < int(found.ended.sum()) < len(EXAMPLES)
    for example, rows, ended, logp in zip(EXAMPLES, found.rows, found.ended, found.logp.tolist(), strict=True):
        if ended:
            assert logp == pytest.approx(log_p(model, example.texts[0], rows, intervene, example.id), abs=1e-4)


def same(one: Written, other: Written) -> bool:
    return one.rows == other.rows and torch.equal(one.ended, other.ended) and torch.allclose(one.logp, other.logp)


@pytest.mark.parametrize("spec", ENDING)
def test_a_beam_of_one_is_greedy_whatever_the_penalty(spec: str) -> None:
    model = ending(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    assert same(greedy(model, batch), beam(model, batch, width=1, length_penalty=3.0))


@pytest.mark.parametrize("spec", ENDING)
@pytest.mark.parametrize("intervene", [None, Permute(seed=5)])
def test_batch_is_single(spec: str, intervene: Intervention | None) -> None:
    model = ending(spec)
    whole = beam(model, collate(EXAMPLES, model.vocabulary), 3, intervene=intervene)
    for i, example in enumerate(EXAMPLES):
        single = beam(model, collate([example], model.vocabulary), 3, intervene=intervene)
        assert whole.rows[i] == single.rows[0]
        assert bool(whole.ended[i]) == bool(single.ended[0])
        assert float(whole.logp[i]) == pytest.approx(float(single.logp[0]), abs=1e-5)


def test_a_wider_beam_finds_likelier_targets() -> None:
    """Not every one: a place among 20 may be lost to targets that end worse."""
    model = ending()
    batch = collate(EXAMPLES, model.vocabulary)
    one, many = (beam(model, batch, width, 0.0) for width in (1, 20))
    assert float((many.logp - one.logp).mean()) > 0.1


def never(model: Translator) -> Translator:
    return more(model, {END: -1000.0})


@pytest.mark.parametrize("width", [1, 4])
def test_what_never_ends_is_cut_and_says_so(width: int) -> None:
    model = never(small_translator(BAHDANAU, EXAMPLES))
    batch = collate(EXAMPLES, model.vocabulary)
    found = beam(model, batch, width)
    assert [len(rows) for rows in found.rows] == [2 * len(e) + 10 for e in EXAMPLES]
    assert not bool(found.ended.any())
    assert [len(rows) for rows in beam(model, batch, width, longest=3).rows] == [3] * len(EXAMPLES)
    assert beam(model, batch, width, longest=0).rows == [[]] * len(EXAMPLES)
    assert bool(found.logp.isfinite().all())


def test_log_p_of_what_was_cut_is_of_its_words_alone() -> None:
    model = never(small_translator(BAHDANAU, EXAMPLES))
    found = greedy(model, collate(EXAMPLES[:1], model.vocabulary), longest=2)
    names = ("", "never seen", "", "", *model.vocabulary.words)
    target = tuple(names[row] for row in found.rows[0])
    batch = collate([Example(0, (EXAMPLES[0].texts[0], target), 0)], model.vocabulary)
    logp: Tensor = model.trace(batch).logits[0].detach().double().log_softmax(-1)
    expected = float(logp[0, found.rows[0][0]]) + float(logp[1, found.rows[0][1]])
    assert float(found.logp[0]) == pytest.approx(expected, abs=1e-5)


def test_an_empty_source_is_written_too() -> None:
    model = ending()
    found = greedy(model, collate([Example(0, ((),), 0)], model.vocabulary))
    assert len(found.rows[0]) <= 10


def test_wrong_widths_and_lengths_are_refused() -> None:
    model = small_translator(BAHDANAU, EXAMPLES)
    batch = collate(EXAMPLES, model.vocabulary)
    for wrong in ({"width": 0}, {"length_penalty": -1.0}, {"longest": -1}):
        with pytest.raises(UsageError):
            beam(model, batch, **wrong)
