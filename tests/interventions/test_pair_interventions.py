"""Interventions on pairs: distributions over the passage, the same alone and in a batch; weights by both texts."""

from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError, UsageError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.search import Search, find
from exegete.interventions.table import BESIDE, WeightTable
from exegete.models.openings import decoder
from exegete.models.ours.pair import Pair
from exegete.tasks.example import Example
from tests.models.slow_pair import LABELS, slow
from tests.small import PAIRS, batch_of, pairs, small_model

EXAMPLES = pairs(6, candidates=True)


def a_pair(spec: str = PAIRS[0], examples: tuple[Example, ...] = EXAMPLES, wrap: bool = False) -> Pair:
    model = small_model(spec, examples, wrap, LABELS)
    assert isinstance(model, Pair)
    return model


@pytest.mark.parametrize("spec", PAIRS)
def test_uniform_weights_give_what_the_slow_model_gives_under_them(spec: str) -> None:
    model = a_pair(spec)
    logits = model.trace(batch_of(model, EXAMPLES), intervene=INTERVENTIONS.make("uniform")).logits
    for row, e in enumerate(EXAMPLES):
        assert logits[row].tolist() == pytest.approx(slow(model, e, [1 / len(e)] * len(e))[0], abs=1e-5)


PASSAGE = ("a", "b", "c")
ASKED = (Example(0, (PASSAGE, ("d",)), 0), Example(1, (PASSAGE, ("e", "f")), 1), Example(2, (PASSAGE[:2], ("c",)), 2))


def test_imposed_weights_are_found_by_passage_and_question(tmp_path: Path) -> None:
    model = a_pair(examples=ASKED)
    batch = batch_of(model, ASKED)
    own = model.trace(batch)
    assert not torch.allclose(own.attention["attention"][0], own.attention["attention"][1], atol=1e-3)
    table = WeightTable.of(model, ASKED)
    assert list(table.rows) == [(*e.texts[0], BESIDE, *e.texts[1]) for e in sorted(ASKED, key=len)]
    table.write(tmp_path / "weights.parquet")
    for impose in (Impose(table=table), Impose(file=str(tmp_path / "weights.parquet"))):
        again = model.trace(batch, intervene=bound(impose, model))
        assert torch.allclose(again.attention["attention"], own.attention["attention"], atol=1e-6)
    unknown = (Example(3, (PASSAGE, ("b",)), 0),)
    with pytest.raises(ExegeteError, match="no weights are stored for the words of text 3"):
        model.trace(batch_of(model, unknown), intervene=bound(Impose(table=table), model))


def test_a_word_that_is_unknown_does_not_make_two_pairs_one() -> None:
    """Unknown words look alike, and where a passage ends must still be seen."""
    one, other = Example(0, (("a", "new"), ("b",)), 0), Example(1, (("a",), ("new", "b")), 1)
    model = a_pair(examples=ASKED)
    table = WeightTable.of(model, (one, other))
    assert len(table.seen(model.vocabulary)) == 2
    assert [len(row) for row in table.lookup(batch_of(model, (one, other)))] == [2, 1]


def test_weights_of_a_question_that_is_explained_are_refused() -> None:
    asked = pairs(3, explained=1)
    with pytest.raises(UsageError, match="not over those of the explained text"):
        WeightTable.of(a_pair(examples=asked), asked)


def test_adversaries_keep_the_prediction_of_a_decoder_that_is_not_linear() -> None:
    model = a_pair()
    batch = batch_of(model, EXAMPLES)
    with torch.no_grad():
        encoded = model.encode(batch).to(torch.float64)
        weights = model.project(encoded.scores, encoded.mask)
    found = find(decoder(model, encoded, batch.ids, weights), Search(count=3, steps=150, lr=0.05))
    for row, e in enumerate(EXAMPLES):
        before = torch.tensor(slow(model, e, weights[row, : len(e)].tolist())[0], dtype=torch.float64).softmax(-1)
        for draw in range(3):
            theirs = found.weights[row, draw, 0, : len(e)]
            after = torch.tensor(slow(model, e, theirs.tolist())[0], dtype=torch.float64).softmax(-1)
            assert float(found.tvd[row, draw]) == pytest.approx(float((before - after).abs().sum() / 2), abs=1e-6)
            assert float(theirs.sum()) == pytest.approx(1)
    several = torch.tensor([len(e) > 2 for e in EXAMPLES])
    assert found.jsd[several].amax(1).min() > 0.05
    assert found.tvd.median() < 0.05
