"""A model gets the characters that people wrote, and predicts what transformers' own pipeline predicts of them."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import Tensor

import exegete as ex
from exegete.answers.explain import example_of
from exegete.models.contract import Predictor
from exegete.tasks.catalogue import load_task
from exegete.tasks.disk import Stored
from exegete.tasks.example import Example
from exegete.training.pretrained import GivenModel
from tests.models.odd_texts import KINDS, odd_texts
from tests.models.tiny import bert

TEXTS = odd_texts()


@pytest.fixture(scope="module", params=list(KINDS))
def parts(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    tokenizer = KINDS[request.param]()
    tokenizer.model_max_length = 256
    return bert(tokenizer=tokenizer, max_position_embeddings=256)


@pytest.fixture(scope="module")
def given(parts: tuple[Any, Any]) -> GivenModel:
    model = ex.wrap(parts[0], tokenizer=parts[1])
    assert isinstance(model, GivenModel)
    return model


def probabilities(model: Predictor, examples: list[Example]) -> Tensor:
    with torch.no_grad():
        return model.logits(model.collate(examples)).softmax(-1)


def piped(parts: tuple[Any, Any], texts: list[str], **more: Any) -> Tensor:
    """What transformers predicts: [text, class]."""
    import transformers

    pipe = transformers.pipeline("text-classification", model=parts[0], tokenizer=parts[1], top_k=None, **more)
    found: list[dict[str, float]] = [
        {each["label"]: each["score"] for each in scored}  # type: ignore[index,misc]
        for scored in pipe(texts)
    ]
    return torch.tensor([[scores[name] for name in parts[0].config.id2label.values()] for scores in found])


def test_predictions_are_those_of_a_pipeline(parts: tuple[Any, Any], given: GivenModel) -> None:
    ours = probabilities(given.model, [example_of(given, (text,)) for text in TEXTS])
    assert float((ours - piped(parts, TEXTS)).abs().max()) < 1e-5


def test_so_are_those_of_a_task_in_memory(parts: tuple[Any, Any], given: GivenModel) -> None:
    task = ex.task(texts=TEXTS * 4, labels=["no", "yes"] * (2 * len(TEXTS)))
    scores = ex.score(given, task, ["attention"])
    test = {e.id: e for e in _as_read(given, task)}
    assert set(scores["example"].unique()) == set(test)
    ours = probabilities(given.model, list(test.values()))
    wanted = piped(parts, [TEXTS[i % len(TEXTS)] for i in test])
    assert float((ours - wanted).abs().max()) < 1e-5


def _as_read(given: GivenModel, task: Any) -> list[Example]:
    from exegete.runs.objects import task_for

    return list(task_for(given, task).split("test"))


def test_a_word_that_is_deleted_takes_the_characters_before_it_along(given: GivenModel, parts: tuple[Any, Any]) -> None:
    model = given.model
    batch = model.collate([example_of(given, ("bad  movie\nof\ta plot",))])
    (places,) = batch.words.nonzero(as_tuple=True)[1:]
    kept = [place for place in range(batch.tokens.shape[1]) if place != int(places[2])]
    left = batch._replace(
        **{name: getattr(batch, name)[:, kept] for name in ("tokens", "present", "words", "part", "sentence")}
    )
    with torch.no_grad():
        ours = model.logits(left).softmax(-1)
    assert float((ours - piped(parts, ["bad  movie\ta plot"])).abs().max()) < 1e-5


def test_every_piece_belongs_to_a_word_and_words_read_as_people_wrote_them(given: GivenModel) -> None:
    batch = given.model.collate([example_of(given, (text,)) for text in TEXTS])
    for row, text in enumerate(TEXTS):
        words = batch.reader.spelled(batch.tokens[row][batch.words[row]].tolist())
        assert list(words) == text.split()
    pieces = given.model.pieces(batch)  # type: ignore[attr-defined]
    assert torch.equal(pieces.member.sum(-1) == 1, pieces.real)
    assert torch.equal(batch.cost.sum(-1), pieces.real.sum(-1))


def test_a_task_that_rewrites_texts_says_how_many_and_how_much_that_changes(given: GivenModel, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = pl.DataFrame({"text": TEXTS * 5, "label": ["no", "yes"] * (len(TEXTS) * 5 // 2)})
    rows.write_csv(path)
    rewritten = load_task(f"file:{path}")  # our default for files: words, lower-cased
    (*_, said) = given.model.notes(rewritten)  # type: ignore[attr-defined]
    assert re.search(r"of \d+ test texts \d+ have other pieces .* \d+ another prediction, .* by up to 0\.\d{3};", said)
    as_people = load_task(f"file:{path}:tokenizer=whitespace,lower=false")
    assert len(given.model.notes(as_people)) == 1  # type: ignore[attr-defined]
    (read,) = (e for e in as_people.split("test") if e.id == rewritten.split("test")[0].id)
    assert "".join(read.written[0]) == TEXTS[read.id % len(TEXTS)]


def test_texts_on_disk_are_read_as_people_wrote_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGETE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "odd.csv"
    pl.DataFrame({"text": TEXTS * 5, "label": ["no", "yes"] * (len(TEXTS) * 5 // 2)}).write_csv(path)
    held = load_task(f"file:{path}:tokenizer=whitespace,lower=false")
    monkeypatch.setattr("exegete.tasks.spool.LARGE", 1)
    spooled = load_task(f"file:{path}:tokenizer=whitespace,lower=false")
    assert isinstance(spooled.split("test"), Stored)
    assert list(spooled.split("test")) == list(held.split("test"))
    assert spooled.hash == held.hash
