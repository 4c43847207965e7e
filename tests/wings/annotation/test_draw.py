"""Drawing items for annotators: which texts, which words, which prediction, and that nothing tells the condition."""

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.noise import stable_seed
from exegete.interventions.permute import Permute
from exegete.models.build import make_model
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.hierarchical import Hierarchical
from exegete.models.ours.last_state import LastState
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from exegete.tasks.sentences import sentences
from exegete.training.checkpoint import Checkpoint, save_checkpoint
from exegete.wings.annotation.sample import Draw, draw_items, draw_sample
from exegete.wings.annotation.sheets import DrawnItems, sheet_csv
from tests.answers.explained_model import SPEC, checkpoint, saved
from tests.small import small_model, small_task, vocabulary

TASK = small_task(longest=12)
EXAMPLES = {e.id: e for e in TASK.split("test")}
ASKED = Draw(count=12, seed=3)


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return checkpoint()


@pytest.fixture(scope="module")
def found(model: Checkpoint) -> DrawnItems:
    return draw_items(model, TASK, ASKED)


def of(model: Checkpoint, task: Task = TASK, **settings: object) -> DrawnItems:
    return draw_items(model, task, replace(ASKED, **settings))  # type: ignore[arg-type]


def test_as_many_of_each_condition_and_no_text_twice(found: DrawnItems) -> None:
    secrets = list(found.key.secrets.values())
    assert [s.condition for s in secrets].count("original") == [s.condition for s in secrets].count("permuted") == 12
    assert len({s.example for s in secrets}) == 24
    assert [item.name for item in found.items] == list(found.key.secrets)
    assert all(len(EXAMPLES[s.example].words) >= 3 for s in secrets)


def test_the_conditions_are_shuffled_together(found: DrawnItems) -> None:
    conditions = [s.condition for s in found.key.secrets.values()]
    changes = sum(a != b for a, b in pairwise(conditions))
    assert changes > 5  # one after the other there is 1


def test_words_and_predictions_one_text_at_a_time(model: Checkpoint, found: DrawnItems) -> None:
    """α from the scores by hand; permuted ones are the same numbers elsewhere, and decide the prediction."""
    permute, moved, classifier = Permute(seed=stable_seed("annotate", ASKED.seed)), 0, deepcopy(model.model)
    assert isinstance(classifier, PoolingClassifier)
    classifier.double()
    for item, secret in zip(found.items, found.key.secrets.values(), strict=True):
        example = EXAMPLES[secret.example]
        batch = collate([example], classifier.vocabulary)
        with torch.no_grad():
            encoded = classifier.encode(batch)
            own = encoded.scores[0].softmax(-1)
            weights = own
            if secret.condition == "permuted":
                weights = classifier.trace(batch, intervene=permute).attention["attention"][0, 0, 0]
                assert sorted(weights.tolist()) == pytest.approx(sorted(own.tolist()), abs=1e-12)
                moved += weights.tolist() != own.tolist()
            assert encoded.values is not None
            logits, before = (classifier.decode(encoded, w.view(1, 1, -1))[0, 0] for w in (weights, own))
        ranked = sorted(range(len(example.words)), key=lambda place: -float(weights[place]))
        assert list(item.marked) == ranked[:3]
        assert item.words == secret.words == tuple(example.words[place] for place in ranked[:3])
        assert secret.predicted == item.predicted == TASK.labels[int(logits.argmax())]
        assert secret.original == TASK.labels[int(before.argmax())]
        assert secret.gold == TASK.labels[example.label]
        assert secret.correct == (secret.predicted == secret.gold)
    assert moved > 8


def test_the_models_own_prediction_if_asked(model: Checkpoint, found: DrawnItems) -> None:
    other = of(model, prediction="original")
    assert all(secret.predicted == secret.original for secret in other.key.secrets.values())
    changed = [s for s in found.key.secrets.values() if s.predicted != s.original]
    assert changed  # otherwise this test tells nothing
    assert [i.marked for i in other.items] == [i.marked for i in found.items]
    assert other.key.id != found.key.id


def test_the_same_draw_is_the_same_key(model: Checkpoint, found: DrawnItems) -> None:
    assert of(model) == found
    again = of(model, seed=4)
    assert again.key.id != found.key.id
    assert [i.texts for i in again.items] != [i.texts for i in found.items]
    several = replace(TASK, splits={**TASK.splits, "test": TASK.splits["test"][::-1]})
    assert of(model, several).items[0].texts == found.items[0].texts  # the order in the file means nothing


def test_nothing_that_annotators_see_tells_the_condition(found: DrawnItems) -> None:
    assert set(found.items[0]._fields) == {"name", "texts", "explained", "marked", "predicted"}
    sheet = sheet_csv(found.items)
    assert not any(word in sheet for word in ("original", "permuted", "gold", "example", "seed"))


def test_short_texts_are_left_out_and_counted(model: Checkpoint) -> None:
    short = tuple(Example(1000 + n, (("b", "c"),), 0) for n in range(5))
    task = replace(TASK, splits={**TASK.splits, "test": (*TASK.splits["test"], *short)})
    few = sum(len(e.words) < 3 for e in task.split("test"))
    assert few >= 5
    found = of(model, task)
    assert f"{few} of 45 test texts have fewer than 3 words and are left out" in found.notes
    assert not {s.example for s in found.key.secrets.values()} & {e.id for e in short}


def test_more_than_there_are(model: Checkpoint) -> None:
    with pytest.raises(UsageError, match=r"100 different texts .* 40 with at least 1 words: use --count 20 or less"):
        of(model, count=50, top=1)
    assert len(of(model, count=20, top=1).items) == 40
    with pytest.raises(UsageError, match="count must be 1 or more"):
        Draw(count=0)
    with pytest.raises(UsageError, match="unknown prediction 'orignal': did you mean 'original'"):
        Draw(prediction="orignal")  # type: ignore[arg-type]


def test_words_without_weight_are_not_highlighted() -> None:
    sparse = checkpoint("average:size=7,hidden=6,scale=1,projection=sparsemax")
    found = of(sparse, count=10)
    few = [item for item in found.items if len(item.marked) < 3]
    assert few
    assert f"in {len(few)} items fewer than 3 words have any weight: only those are highlighted" in found.notes


def test_equal_weights_are_drawn_not_taken_in_order() -> None:
    model = checkpoint()
    assert isinstance(model.model, PoolingClassifier)
    with torch.no_grad():
        for parameter in model.model.scorer.parameters():
            parameter.zero_()
    marks = [item.marked for item in of(model).items]
    assert len(set(marks)) > 10
    assert any(mark != (0, 1, 2) for mark in marks)


def test_a_hierarchy_has_the_product_of_its_weights() -> None:
    examples = TASK.split("train")
    hierarchy = make_model("hierarchical:size=7,hidden=6,scale=1", vocabulary(examples), TASK.labels).eval()
    assert isinstance(hierarchy, Hierarchical)
    words = (*"bcdef", ".", *"dacbg", ".", *"efghi", ".")
    task = replace(TASK, splits={**TASK.splits, "test": tuple(Example(n, (words,), 1) for n in range(8))})
    found = of(replace(checkpoint(), model=hierarchy), task, count=4)
    permute = Permute(seed=stable_seed("annotate", ASKED.seed))
    for item, secret in zip(found.items, found.key.secrets.values(), strict=True):
        batch = collate([task.split("test")[secret.example]], hierarchy.vocabulary)
        with torch.no_grad():
            trace = hierarchy.trace(batch, intervene=permute if secret.condition == "permuted" else None)
        inside, above = trace.attention["word"][0, 0], trace.attention["sentence"][0, 0, 0]
        product = [float(inside[s, t] * above[s]) for t, s in enumerate(sentences(words))]
        assert list(item.marked) == sorted(range(len(words)), key=lambda t: -product[t])[:3]
    assert len({item.marked for item in found.items}) > 2


def test_a_pair_shows_both_texts_and_ranks_one() -> None:
    def asked(e: Example) -> Example:
        return Example(e.id, (e.words, ("where", "is", "it", "?")), e.label)

    task = replace(TASK, splits={name: tuple(map(asked, part)) for name, part in TASK.splits.items()}, kind="pair")
    model = replace(checkpoint(), model=small_model(SPEC, task.split("train")))
    found = of(model, task)
    for item in found.items:
        assert len(item.texts) == 2
        assert item.words == tuple(item.texts[0][place] for place in item.marked)
    lines = sheet_csv(found.items).splitlines()
    assert lines[0] == "\ufeffitem,text,question,prediction,top words,relevant"
    assert ",where is it ?," in lines[1]


def test_what_annotators_call_the_classes(model: Checkpoint, found: DrawnItems) -> None:
    named = of(model, labels={"no": "without a", "yes": "with a"})
    assert {item.predicted for item in named.items} == {"without a", "with a"}
    assert {s.predicted for s in named.key.secrets.values()} == {"no", "yes"}
    assert named.key.id != found.key.id
    with pytest.raises(UsageError, match="unknown class of task 'small' 'nein'"):
        of(model, labels={"nein": "x"})
    numbers = replace(TASK, labels=("0", "1"))
    assert of(model, numbers).notes[-1].endswith("--labels 0=NAME,1=NAME")
    assert "--labels" not in of(model, numbers, labels={"0": "a", "1": "b"}).notes[-1]


@pytest.fixture
def letters(tmp_path: Path) -> str:
    """A file with the classes and words of the small model."""
    lines = [f'"{" ".join(e.words)} x{e.id}",{TASK.labels[e.label]}' for e in TASK.split("train")]
    (tmp_path / "letters.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return f"file:{tmp_path / 'letters.csv'}"


def test_from_a_checkpoint_and_a_task_by_name(letters: str, tmp_path: Path) -> None:
    found = draw_sample(saved(tmp_path / "model"), letters, Draw(count=3))
    assert len(found.items) == 6
    assert 0 <= found.key.facts["test_accuracy"] <= 1


def test_what_can_not_be_asked(letters: str, tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="there is no checkpoint"):
        draw_sample(tmp_path / "none", letters, ASKED)
    without = make_model(f"{SPEC},attention=none", vocabulary(TASK.split("train")), TASK.labels)
    assert isinstance(without, LastState)
    save_checkpoint(tmp_path / "blind", replace(checkpoint(), model=without.eval()))
    with pytest.raises(UsageError, match="no attention whose weights could be read"):
        draw_sample(tmp_path / "blind", letters, ASKED)
    (tmp_path / "other.csv").write_text("text,label\n" + "".join(f"a b c {n},{n % 3}\n" for n in range(60)))
    with pytest.raises(ExegeteError, match="predicts the classes no, yes"):
        draw_sample(saved(tmp_path / "model"), f"file:{tmp_path / 'other.csv'}", ASKED)
