"""Language models in audits: what is asked of a class in words, and what can't be tested without training."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import exegete as ex
from exegete.answers.request import AuditRequest, study_for
from exegete.answers.retraining import retraining_note
from exegete.base.errors import UsageError
from exegete.models.huggingface.prompts import Prompt, name_with_template
from exegete.report.labels import model_label
from exegete.runs.own_files import _of_model
from exegete.tasks.example import Example
from tests.models.causal_models import TEMPLATE, base_of, bytes_without_symbols, classifier
from tests.models.tiny import saved

WORDS = ["it", "ok", "bad", "good", "film", "dog", "was", "so", "nice", "odd", "a", "the", "red", "blue", "box", "car"]
PROMPT = Prompt(TEMPLATE, {"bad": [" bad", "bad"], "good": [" good", " ok"]})


def texts_and_classes(count: int) -> tuple[list[str], list[str]]:
    """Random texts, of the class that the tiny model gives them in four of five."""
    draw, model = random.Random(0), classifier()
    texts = list(dict.fromkeys(" ".join(draw.choice(WORDS) for _ in range(draw.randint(5, 9))) for _ in range(count)))
    with torch.no_grad():
        rows = [int(model.logits(model.collate([Example(0, (tuple(t.split()),), 0)])).argmax()) for t in texts]
    return texts, [model.labels[row] if draw.random() < 0.8 else draw.choice(model.labels) for row in rows]


def test_a_question_is_asked_of_a_class_in_words() -> None:
    texts, labels = texts_and_classes(120)
    model = ex.wrap(base_of("llama"), tokenizer=bytes_without_symbols(), prompt=PROMPT)
    found = ex.ask("permutation", model, ex.task(texts=texts, labels=labels), texts=8)
    assert len(found.rows) == 8
    assert found.rows["example"].n_unique() == 8


def test_what_needs_training_is_not_testable_and_says_why(tmp_path: Path) -> None:
    name = f"hf:{saved(base_of('llama'), bytes_without_symbols(), tmp_path / 'lm')}"
    study = study_for(AuditRequest(task="sst", model=name))
    (sentence,) = retraining_note(study)
    assert "whether its weights help another model" in sentence
    assert sentence.endswith("that needs models trained anew, and a language model is asked as it is.")
    assert study.tasks == ("sst:lower=false",)  # nothing is planted for a model that is not trained
    with pytest.raises(UsageError, match="a language model is asked as it is: leave it out"):
        study_for(AuditRequest(task="sst", model=name, retrain=True))


def test_a_model_is_called_by_its_prompt_as_it_is_written() -> None:
    assert model_label(f"hf:gpt2:prompt={PROMPT.spelled()}") == "hf:gpt2:prompt=It is: {text}\\nSo it is"
    assert name_with_template("hf:gpt2:prompt=file.toml") == "hf:gpt2:prompt=file.toml"


@pytest.mark.slow
def test_an_audit_of_a_class_in_words_goes_through(tmp_path: Path) -> None:
    texts, labels = texts_and_classes(500)
    folder = saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    loaded: Any = ex.load(f"hf:{folder}", prompt=PROMPT)
    task = ex.task(texts=texts, labels=labels)
    found = ex.audit(loaded, task, quick=True, texts=50, workers=1, out=tmp_path / "run", progress=False)
    assert {"reads", "ranks", "agrees", "used"} <= set(found.scorecard["name"])
    assert any("a language model is asked as it is" in sentence for sentence in found.untested)
    page = found.report(tmp_path / "report.html").read_text(encoding="utf8")
    assert "which stays as it is: a class is the first piece of one of its words" in page


def test_workers_are_given_the_file_of_a_prompt(tmp_path: Path) -> None:
    place = tmp_path / "prompt.toml"
    place.write_text('template = "{text}"', encoding="utf8")
    assert list(_of_model(f"hf:gpt2:prompt={place}")) == [Path("gpt2"), place]
    assert list(_of_model(f"hf:gpt2:prompt={PROMPT.spelled()}")) == [Path("gpt2")]


def test_a_study_may_name_a_long_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(base_of("llama"), bytes_without_symbols(), tmp_path / "lm")
    long = Prompt("It is so. " * 30 + TEMPLATE, PROMPT.answers)
    study = study_for(AuditRequest(task="sst", model=f"hf:lm:prompt={long.spelled()}", quick=True))
    assert study.title.startswith("hf:lm:prompt=It is so.")
