"""Every importance on models of transformers: scored on words, alone as in a batch, or refused with a sentence."""

import os
from functools import cache
from pathlib import Path

import pytest
import torch

from exegete.importance.catalogue import IMPORTANCES, computed
from exegete.importance.contract import refusal
from exegete.importance.erasure import sharing
from exegete.models.huggingface.make import made
from exegete.models.huggingface.model import HuggingFace
from exegete.tasks.example import Example
from tests.models.tiny import bert, bert_folder, in_memory, roberta

TEXTS = ("an unbelievably charming movie of plot", "bad", "a dull ok", "terrific \u200b movie of a bad plot")
EXAMPLES = tuple(Example(i, (tuple(text.split(" ")),), i % 2) for i, text in enumerate(TEXTS))
CHEAP = {
    "integrated_gradients": "integrated_gradients:steps=8,most=32", "smoothgrad": "smoothgrad:samples=4",
    "lime": "lime:samples=20", "kernel_shap": "kernel_shap:samples=20",
}  # fmt: skip
BASELINES = tuple(f"integrated_gradients:steps=4,most=16,baseline={name}" for name in ("unknown", "padding", "mean"))
AT_SITES = ("attention:site=encoder.0", "attention_x_gradient:site=encoder.0", "attention_x_norm:site=encoder.0")
METHODS = (*(CHEAP.get(name, name) for name in computed()), "lrp:attention=half", *BASELINES, *AT_SITES)
REFUSED = ("deeplift",)
TINY = "bert", "roberta", "mean", "attention"  # the last two: heads of ours


@cache
def model_of(name: str) -> HuggingFace:
    if name in ("mean", "attention"):
        torch.manual_seed(0)
        return made(f"hf:{bert_folder()}:head={name}", labels=("no", "yes"))
    return in_memory(*(bert() if name == "bert" else roberta()))


def checked(model: HuggingFace, method: str, examples: tuple[Example, ...]) -> None:
    """Right shape, words alone, and a text scores the same whatever stands beside it."""
    importance = IMPORTANCES.make(method)
    if (reason := refusal(importance, model)) is not None:
        assert method.partition(":")[0] in REFUSED, reason
        assert " " in reason.strip()
        return
    assert method.partition(":")[0] not in REFUSED
    batch = model.collate(examples)
    with sharing():
        whole = importance(model, batch)
    assert whole.values.shape == batch.tokens.shape
    assert torch.equal(whole.values.isfinite(), batch.words)
    assert torch.equal(whole.values.isnan(), ~batch.words)
    assert whole.values[batch.words].any()
    for i, e in enumerate(examples):
        alone = importance(model, model.collate([e])).values[0]
        torch.testing.assert_close(
            alone, whole.values[i, : len(alone)], atol=1e-5, rtol=1e-5, equal_nan=True, check_dtype=False
        )


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("method", METHODS)
def test_alone_as_in_a_batch(name: str, method: str) -> None:
    checked(model_of(name), method, EXAMPLES)


@pytest.mark.data
@pytest.mark.parametrize("method", METHODS)
def test_a_real_model_alone_as_in_a_batch(method: str) -> None:
    folder = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    if not folder.is_dir():
        pytest.skip("bert-tiny does not lie beside the data sets")
    checked(made(f"hf:{folder}"), method, EXAMPLES[:2])
