"""A word of a translator's output is explained as its next step, written down by hand."""

from pathlib import Path

import pytest
import torch

import exegete
from exegete.answers.explain import explain_prediction
from exegete.answers.question import Word
from exegete.answers.translations import translate
from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.tasks.example import Example
from exegete.tasks.pieces import learn_pieces
from tests.answers.explained_model import TEXT, checkpoint
from tests.answers.written_model import SOURCE, translator

PIECES = tuple(f"▁{word}" for word in SOURCE.split())
KINDS = ("translator", "transformer_translator")


def steps(kind: str, before: tuple[str, ...]) -> torch.Tensor:
    """Logits of the word that follows, by teacher forcing over all steps: the last of them."""
    model = translator(kind).model
    with torch.no_grad():
        return model.logits(model.collate([Example(0, (PIECES, before), 0)]))[0, len(before)].double()


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_is_the_likeliest_after_those_before(kind: str) -> None:
    model, output = translator(kind).model, translate(translator(kind), SOURCE)
    assert len(output) > 3
    assert len(set(output)) > 3 or kind != "translator"
    for step, word in enumerate(output):
        logits = steps(kind, output[:step])
        logits[[0, 2]] = -torch.inf  # padding and the start are never written
        assert model.words[int(logits.argmax())] == word  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_explained_by_words_of_the_source(kind: str) -> None:
    kept, output = translator(kind), translate(translator(kind), SOURCE)
    found = explain_prediction(kept, SOURCE, ["gradient_x_input", "leave_one_out:of=logit"], Word(3))
    assert (found.words, found.written, found.step, found.target) == (PIECES, output, 3, output[2])
    view = kept.model.as_classes()  # type: ignore[attr-defined]
    batch = view.collate([Example(0, (PIECES, output[:2]), 0)])
    target = Target(torch.tensor([view.labels.index(output[2])]))
    ours = IMPORTANCES.make("gradient_x_input")(view, batch, target).values[batch.words]
    assert found["gradient_x_input"].scores == pytest.approx(ours.tolist(), abs=1e-6)
    row, whole = view.labels.index(output[2]), steps(kind, output[:2])
    for place, score in enumerate(found["leave_one_out"].scores):
        left = Example(0, (PIECES[:place] + PIECES[place + 1 :], output[:2]), 0)
        with torch.no_grad():
            without = view.logits(view.collate([left]))[0, row]
        assert abs(score) == pytest.approx(abs(float(whole[row] - without)), abs=1e-5)
    p = float(whole.softmax(-1)[row])
    assert found.probabilities[output[2]] == pytest.approx(p, abs=1e-6)


def test_a_foil_is_the_difference_of_two_words() -> None:
    kept, methods = translator(), ["gradient_x_input"]
    one, other = (
        explain_prediction(kept, SOURCE, methods, Word(2, word))["gradient_x_input"].scores for word in ("felina", "du")
    )
    both = exegete.explain(kept, SOURCE, methods, target="felina", contrast="▁du", step=2)
    assert (both.target, both.contrast) == ("▁felina", "▁du")
    assert both[methods[0]].scores == pytest.approx([a - b for a, b in zip(one, other, strict=True)], abs=1e-6)
    assert "the logit of felina minus that of du, at step 2" in both.heatmap().title


def test_words_are_the_sums_of_their_pieces() -> None:
    kept = translator()
    whole = explain_prediction(kept, SOURCE, ["gradient_x_input"])
    assert whole.heatmap().words == tuple(SOURCE.split())
    assert whole.heatmap("piece").words == PIECES
    assert [each["text"] for each in whole.to_json()["whole_words"]] == SOURCE.split()
    with pytest.raises(UsageError, match="reads words, not pieces"):
        explain_prediction(checkpoint(), TEXT, ["attention"]).heatmap("piece")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Word(40), "there is no output word 40"),
        (Word(0), "there is no output word 0"),
        (Word(1, "Katze"), "never writes 'Katze'"),
    ],
)
def test_wrong_steps_and_words_are_one_sentence(asked: Word, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        explain_prediction(translator(), SOURCE, ["attention"], asked)


def test_a_class_has_no_steps() -> None:
    with pytest.raises(UsageError, match="writes no words"):
        explain_prediction(checkpoint(), TEXT, ["attention"], Word(2))


def test_pieces_are_those_of_the_task(tmp_path: Path) -> None:
    """A model that reads pieces gets them from its task, learnt again; from other texts it is refused."""
    from exegete.answers.translations import _pieces
    from exegete.base.errors import ExegeteError
    from exegete.tasks.catalogue import load_task

    lines = [f"low lower lowest {number}" for number in range(40)]
    for side in ("en", "de"):
        (tmp_path / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf8")
    name = f"parallel:{tmp_path}/train.en:target={tmp_path}/train.de,pieces=30"
    task = load_task(name)
    ours = learn_pieces((lines[e.id] for e in task.split("train") for _ in ("source", "target")), 30)
    assert _pieces(name, task.hash).cut("lower lowest") == ours.cut("lower lowest")
    with pytest.raises(ExegeteError, match="its pieces are unknown"):
        _pieces(name, "other")
