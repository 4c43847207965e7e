"""The model that a run is given from memory is the one that it asks: rebuilt by workers, or kept in this process."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import exegete as ex
from exegete.base.names import parse
from exegete.runs.objects import name_of_model
from exegete.training.pretrained import GivenModel
from tests.models.tiny import bert

CLASSES = ("no", "yes")


def reviews() -> Any:
    words = ["a", "bad", "movie", "char", "charming", "unbelievably", "dull", "of", "plot", "terrific", "ok"]
    texts = [" ".join(words[(i * k) % len(words)] for k in range(2, 4 + i % 9)) + f" {i}" for i in range(160)]
    return ex.task(texts=texts, labels=[CLASSES[i % 2] for i in range(160)])


def subclass() -> type[Any]:
    import transformers

    class AveragingForSequenceClassification(transformers.BertForSequenceClassification):
        """Reads the mean of all states, with the tensors of a plain BERT."""

        def forward(
            self, input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None, **more: Any
        ) -> Any:
            states = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
            real = attention_mask[..., None].to(states.dtype)
            logits = self.classifier((states * real).sum(1) / real.sum(1))
            return transformers.modeling_outputs.SequenceClassifierOutput(logits=logits)

    return AveragingForSequenceClassification


def averaging() -> tuple[Any, Any]:
    base, tokenizer = bert(CLASSES)
    own = subclass()(base.config)
    own.load_state_dict(base.state_dict())
    own.train(False)
    return own, tokenizer


def with_more_tensors() -> tuple[Any, Any]:
    own, tokenizer = averaging()
    own.classifier = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    return own, tokenizer


@pytest.mark.parametrize("made", [averaging, pytest.param(with_more_tensors, marks=pytest.mark.slow)])
def test_a_forward_of_ones_own_is_asked_in_this_process(made: Any, tmp_path: Path) -> None:
    own, tokenizer = made()
    given, task = ex.wrap(own, tokenizer=tokenizer), reviews()
    assert isinstance(given, GivenModel)
    assert given.model.readout is not None
    assert given.model.readout.query == "every"
    result = ex.ask("permutation", given, task, texts=12, out=tmp_path / "run", workers=2)
    kept = pl.concat([pl.read_parquet(path) for path in (tmp_path / "run").rglob("predict-*/*.parquet")])
    assert result.rows.height == 12
    with torch.no_grad():
        for row in kept.head(12).iter_rows(named=True):
            theirs = own(**tokenizer(" ".join(row["words"]), return_tensors="pt")).logits.softmax(-1)[0]
            assert row["probabilities"] == pytest.approx(theirs.tolist(), abs=1e-5)
    (name,) = {row["model"] for row in result.rows.iter_rows(named=True)}
    assert parse(name).settings["wrapped"]
    notes = " ".join(path.read_text(encoding="utf8") for path in (tmp_path / "run" / "cells").glob("*.json"))
    assert "was asked in this process as it is" in notes


def test_what_transformers_makes_again_lies_in_the_run(tmp_path: Path) -> None:
    given = ex.wrap(*bert(CLASSES)[:1], tokenizer=bert(CLASSES)[1])
    name = name_of_model(given, reviews(), tmp_path)
    assert "wrapped" not in parse(name).settings
    assert (Path(parse(name).name.removeprefix("hf:")) / "model.safetensors").is_file()


def test_at_least_twenty_texts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from exegete.runs import objects
    from exegete.training import checkpoint

    given = ex.wrap(*bert(CLASSES)[:1], tokenizer=bert(CLASSES)[1])
    assert isinstance(given, GivenModel)
    seen: list[Any] = []
    load = checkpoint.load_checkpoint

    def watched(folder: Path) -> Any:
        found = load(folder)
        own = found.model.collate

        def collate(some: Any) -> Any:
            seen.extend(some)
            return own(some)

        object.__setattr__(found.model, "collate", collate)
        return found

    monkeypatch.setattr(objects, "load_checkpoint", watched)
    task = reviews()
    name_of_model(given, task, tmp_path)
    assert len(seen) >= 20
    read = objects.task_for(given, task)
    every = [*read.split("test"), *read.split("dev")]
    assert max(every, key=lambda e: len(e.all_words)).id in {e.id for e in seen}
