"""Scoring: a keyed choice of texts, shards of bounded size, and rows that say what a score took."""

import polars as pl
import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.importance.contract import Importance, Scores, Target, on_words, predicted
from exegete.importance.gradient import Gradient
from exegete.importance.integrated_gradients import IntegratedGradients
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.occlusion import Occlusion
from exegete.models.contract import Predictor
from exegete.runs.shards import Shards, milliseconds, score_frames
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.selection import choose_texts
from tests.small import SPECS, small_model, texts


def test_a_choice_of_texts_is_keyed_by_their_ids() -> None:
    examples = texts(50)
    few = choose_texts(examples, 10)
    assert len(few) == 10
    assert [e.id for e in few] == sorted(e.id for e in few)  # in their own order
    assert set(few) <= set(choose_texts(examples, 20))  # more texts are the same and others
    assert set(choose_texts(examples[::-1], 10)) == set(few)
    assert choose_texts(examples, None) == choose_texts(examples, 50) == choose_texts(examples, 99) == examples


def test_shards_hold_few_texts_and_few_words() -> None:
    long = tuple(Example(i, (("a",) * 5000,), 0) for i in range(5))
    assert [len(shard) for shard in Shards(long)] == [3, 2]
    short = tuple(Example(i, (("a",),), 0) for i in range(1025))
    assert [len(shard) for shard in Shards(short)] == [512, 512, 1]
    assert not Shards(())
    huge = (Example(0, (("a",) * 20_000,), 0), Example(1, (("a",),), 0))
    assert [len(shard) for shard in Shards(huge)] == [1, 1]


def test_rows_say_what_a_method_said() -> None:
    examples = texts(12)
    model = small_model(SPECS[0], examples)
    methods: dict[str, Importance] = {
        "g": Gradient(),
        "ig": IntegratedGradients(),
        "loo": LeaveOneOut(),
        "zero": Occlusion(),
    }
    frames = score_frames(model, methods, examples)
    batch = collate(examples, model.vocabulary)
    for name, method in methods.items():
        expected = method(model, batch)
        frame = frames[name]
        assert frame["example"].to_list() == [e.id for e in examples]
        assert frame["signed"].unique().to_list() == [expected.signed]
        assert expected.cost is not None
        assert frame["forward"].to_list() == expected.cost.forward.tolist()
        assert frame["backward"].to_list() == expected.cost.backward.tolist()
        for row, values, words in zip(frame["scores"], expected.values, batch.words, strict=True):
            assert torch.allclose(torch.tensor(row.to_list()).double(), values[words].double(), atol=1e-5)
    assert frames["g"]["error"].null_count() == len(examples)
    assert frames["ig"]["error"].max() < 0.01  # type: ignore[operator]
    assert frames["ig"].schema["error"] == pl.Float64
    assert milliseconds(model, Gradient(), examples) > 0


class Broken:
    """Scores that are not numbers."""

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        target = target or predicted(model.trace(batch).logits)
        return Scores(on_words(torch.full(batch.tokens.shape, torch.inf), batch), False, target)


def test_a_method_without_numbers_is_one_sentence() -> None:
    examples = texts(3)
    with pytest.raises(ExegeteError, match="broken"):
        score_frames(small_model(SPECS[0], examples), {"broken": Broken()}, examples)
