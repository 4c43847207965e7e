"""Real language models: the next word, and a class in words, as transformers computes them."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import exegete as ex
from exegete.cli import app
from exegete.training.evaluation import predict

START = "Once upon a time, there was a little girl named"
METHODS = "gradient,lrp,leave_one_out,attention"


def folder(name: str) -> Path:
    """Beside the data sets."""
    place = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / name
    if "EXEGETE_DATA" not in os.environ or not place.is_dir():
        pytest.skip(f"{name} does not lie beside the data sets at EXEGETE_DATA")
    return place


@pytest.mark.data
def test_a_story_goes_on_as_transformers_writes_it_and_is_explained(tmp_path: Path) -> None:
    import transformers

    place = folder("stories15m")
    base: Any = transformers.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(place)
    loaded: Any = ex.load(f"hf:{place}")
    found = ex.explain(loaded, START, METHODS.split(","))
    with torch.no_grad():
        wanted = base(**tokenizer(START, return_tensors="pt")).logits[0, -1].softmax(-1)
    assert found.probabilities[found.prediction] == pytest.approx(float(wanted.max()), abs=1e-5)
    ids = tokenizer(START, return_tensors="pt")["input_ids"]
    written = base.generate(ids, max_new_tokens=2, do_sample=False)[0, ids.shape[1] :]
    assert found.next_word == " Lily" == " " + tokenizer.decode(written)
    assert found["lrp"].error is not None
    assert found["lrp"].error < 1e-4
    page = tmp_path / "story.html"
    said = CliRunner().invoke(app, ["explain", START, "--model", f"hf:{place}", "--with", METHODS, "--html", str(page)])
    assert said.exit_code == 0, said.output
    assert "Next word: “ Lily”" in said.output
    assert "Next word: “ Lily”" in page.read_text(encoding="utf8")


@pytest.mark.slow
@pytest.mark.data
def test_a_class_in_words_is_right_more_often_than_not() -> None:
    import random

    place = folder("smollm2")
    answers = {"negative": [" negative", " Negative"], "positive": [" positive", " Positive"]}
    loaded: Any = ex.load(f"hf:{place}", prompt=ex.Prompt("Review: {text}\nSentiment:", answers, chat=False))
    task = ex.task("rotten_tomatoes:tokenizer=whitespace,lower=false")
    some = random.Random(0).sample(list(task.split("test")), 60)
    right = predict(loaded.model, some).argmax(-1) == torch.tensor([e.label for e in some])
    assert float(right.float().mean()) > 0.7  # 0.78 ± 0.05
