"""Checkpoints: they come back whole, and damaged ones are one sentence."""

import json
from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.models.build import build
from exegete.tasks.batching import collate
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from tests.small import small_task


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    task = small_task()
    model = build("cnn:size=8,hidden=8,projection=entmax,learned=true,wrap=true", task)
    save_checkpoint(
        tmp_path / "model", Checkpoint(model.eval(), "small", task.hash, 0, {}, {"test": {"accuracy": 0.5}})
    )
    return tmp_path / "model"


def test_a_model_comes_back_as_it_was(saved: Path) -> None:
    task = small_task()
    model, back = (
        build("cnn:size=8,hidden=8,projection=entmax,learned=true,wrap=true", task),
        load_checkpoint(saved).model,
    )
    batch = collate(task.split("test"), model.vocabulary)
    assert back.reader == model.reader
    assert torch.equal(back.trace(batch).logits, model.trace(batch).logits)


@pytest.mark.parametrize(("task", "names"), [("imdb:subset=jw", ("negative", "positive")), ("agnews", ("0", "1"))])
def test_a_film_review_that_was_of_class_0_or_1_is_negative_or_positive(
    saved: Path, task: str, names: tuple[str, ...]
) -> None:
    """As 0.1 wrote it; what it predicts stays."""
    before = load_checkpoint(saved)
    facts = json.loads((saved / "checkpoint.json").read_text())
    (saved / "checkpoint.json").write_text(json.dumps(facts | {"task": task, "labels": ["0", "1"]}))
    after = load_checkpoint(saved)
    assert after.classifier.labels == names
    batch = after.classifier.collate(small_task().split("test"))
    assert torch.equal(after.classifier.trace(batch).logits, before.classifier.trace(batch).logits)


def test_no_file_of_a_checkpoint_is_a_pickle(saved: Path) -> None:
    assert sorted(p.name for p in saved.iterdir()) == ["checkpoint.json", "model.safetensors"]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def test_damage_is_one_sentence(saved: Path) -> None:
    whole = (saved / "model.safetensors").read_bytes()
    _cut(saved / "model.safetensors")
    with pytest.raises(ExegeteError, match=r"damaged: model.safetensors can't be read"):
        load_checkpoint(saved)
    changed = bytearray(whole)
    changed[-3] ^= 1
    (saved / "model.safetensors").write_bytes(bytes(changed))
    with pytest.raises(ExegeteError, match="not those that were saved"):
        load_checkpoint(saved)
    (saved / "model.safetensors").unlink()
    with pytest.raises(ExegeteError, match="damaged"):
        load_checkpoint(saved)
    _cut(saved / "checkpoint.json")
    with pytest.raises(ExegeteError, match="can't be read as a checkpoint"):
        load_checkpoint(saved)
    with pytest.raises(ExegeteError, match="there is no checkpoint"):
        load_checkpoint(saved.parent)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 0, "exegete": "0.0.1"}, r"exegete 0.0.1 in another format"),
        ({"labels": ["x", "y", "z"]}, "damaged"),
        ({"words": None}, "damaged"),
    ],
)
def test_another_version_or_missing_facts_are_one_sentence(
    saved: Path, change: dict[str, object], sentence: str
) -> None:
    facts = json.loads((saved / "checkpoint.json").read_text()) | change
    (saved / "checkpoint.json").write_text(json.dumps(facts))
    with pytest.raises(ExegeteError, match=sentence):
        load_checkpoint(saved)
