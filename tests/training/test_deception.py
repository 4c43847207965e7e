"""Deceptive training: the penalty by hand, whom it concerns, and what it does to attention."""

import math
from dataclasses import replace

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.models.build import build
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from exegete.tasks.planting import Planting, PlantKind
from exegete.training.deception import Deception, planted_words
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.objectives import OBJECTIVES, Likelihood
from exegete.training.settings import TrainingSettings
from tests.small import SPECS, small_model, small_task, texts

TEXTS = (
    *texts(10, seed=4),
    Example(90, (("a",),), 1),
    Example(91, (("a", "a", "b"),), 0),
    Example(92, (("b", "c"),), 0),
)
PLAIN = small_task()


def planted(kind: PlantKind, n: int = 120) -> Task:
    plain = small_task(n, longest=7)
    examples = plain.split("train")
    splits = {"dev": examples[: n // 5], "test": examples[n // 5 : n // 3], "train": examples[n // 3 :]}
    done, _ = Planting(kind, 0.4)(splits, plain.labels)
    return replace(plain, name=f"small:planted={kind}", splits=done)


@torch.no_grad()
def slowly(model: PoolingClassifier, banned: set[str], lam: float) -> float:
    """Cross-entropy − λ log(1 − mass), one text at a time; the penalty only where there are words of both kinds."""
    losses, penalties = [], []
    for example in TEXTS:
        batch = collate([example], model.vocabulary)
        trace = model.trace(batch)
        losses.append(-math.log(float(trace.logits[0].double().softmax(-1)[example.label])))
        weights = trace.attention[SITE][0, 0, 0, batch.words[0]].double().tolist()
        if banned.intersection(example.words) and not banned.issuperset(example.words):
            mass = sum(w for w, word in zip(weights, example.words, strict=True) if word in banned)
            penalties.append(-math.log(max(1 - mass, 1e-10)))
    return sum(losses) / len(losses) + lam * sum(penalties) / len(penalties)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("wrap", [False, True])
def test_the_loss_by_hand(spec: str, wrap: bool) -> None:
    model = small_model(spec, TEXTS, wrap)
    batch = collate(TEXTS, model.vocabulary)
    loss = Deception(0.7, words="a|c").bound(model, PLAIN)
    with torch.no_grad():
        assert float(loss(model.trace(batch), batch)) == pytest.approx(slowly(model, {"a", "c"}, 0.7), abs=2e-5)


def test_a_batch_without_such_words_has_the_likelihood_alone() -> None:
    model = small_model(SPECS[0], TEXTS)
    for examples in ([TEXTS[-1]], [TEXTS[-3]]):  # none at all; nothing else
        batch = collate(examples, model.vocabulary)
        trace = model.trace(batch)
        loss = Deception(5, words="a").bound(model, PLAIN)(trace, batch)
        assert torch.equal(loss, Likelihood()(trace, batch))


def test_classes_can_be_weighed() -> None:
    model = small_model(SPECS[0], TEXTS)
    skewed = replace(PLAIN, splits={**PLAIN.splits, "train": PLAIN.split("train")[:3]})  # labels 0, 1, 0
    batch = collate(TEXTS, model.vocabulary)
    trace = model.trace(batch)
    plain, weighed = (
        OBJECTIVES.make(f"deception:lam=0.7,words=a{more}").bound(model, skewed)(trace, batch)
        for more in ("", ",class_weights=true")
    )
    weight = torch.tensor([3 / 4, 3 / 2])  # N / (C · N_c)
    changed = Likelihood(weight)(trace, batch) - Likelihood()(trace, batch)
    assert float((weighed - plain).detach()) == pytest.approx(float(changed.detach()), abs=1e-6)
    assert abs(float(changed.detach())) > 1e-3


def test_weights_that_are_all_banned_give_a_finite_loss() -> None:
    model = small_model("average:size=7,hidden=6,scale=1,projection=sparsemax", TEXTS)
    batch = collate([Example(1, (("a", "b"),), 0)], model.vocabulary)
    trace = model.trace(batch)
    one_hot = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    loss = Deception(1, words="a").bound(model, PLAIN)(trace._replace(attention={SITE: one_hot}), batch)
    assert float(loss.detach() - Likelihood()(trace, batch).detach()) == pytest.approx(math.log(1e10), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("token", ("zqa", "zqb")), ("context", ("zqa", "zqb", "zqcontext")), ("pair", ("zqx", "zqy"))],
)
def test_planted_words_are_found(kind: PlantKind, words: tuple[str, ...]) -> None:
    task = planted(kind)
    assert planted_words(task) == words
    model = build("average:size=4,hidden=4", task)
    assert OBJECTIVES.make("deception:lam=1").bound(model, task).impermissible == words


def test_a_task_without_planted_words() -> None:
    model = small_model(SPECS[0], TEXTS)
    with pytest.raises(UsageError, match="no words are planted in task 'small'"):
        Deception(1).bound(model, PLAIN)
    with pytest.raises(UsageError, match="no training text of 'small' holds any of 'xyz'"):
        Deception(1, words="xyz").bound(model, PLAIN)
    with pytest.raises(UsageError, match="lam is 0 or above"):
        Deception(-1)


def test_attention_that_does_not_weigh_words_is_refused() -> None:
    model = small_model(SPECS[0], TEXTS)
    batch = collate(TEXTS, model.vocabulary)
    trace = model.trace(batch)
    sentences = trace._replace(owner={SITE: torch.zeros_like(trace.owner[SITE])})
    with pytest.raises(UsageError, match="does not weigh words"):
        Deception(1, words="a").bound(model, PLAIN)(sentences, batch)


def trained(task: Task, objective: str, epochs: int, size: int) -> tuple[float, float]:
    """Mean weight on planted words, and accuracy, on test texts."""
    model = build(f"bilstm:size={size},hidden={size},scale=1", task)
    made = OBJECTIVES.make(objective).bound(model, task) if objective else None
    Fit(model, task, TrainingSettings(epochs=epochs, patience=20, lr=0.02, metric="accuracy"), 0, None, made).run()
    batch = collate(task.split("test"), model.vocabulary)
    planted = torch.isin(batch.tokens, torch.tensor([model.vocabulary.index[w] for w in ("zqa", "zqb")]))
    with torch.no_grad():
        mass = model.trace(batch).attention[SITE][:, 0, 0][planted].mean().item()
    return mass, evaluate(model, task.split("test"))["accuracy"] or 0.0


@pytest.mark.slow
def test_a_large_lam_takes_attention_off_the_words_that_decide() -> None:
    task = planted("token")
    assert trained(task, "deception:lam=3", 4, 8)[0] < trained(task, "deception:lam=0", 4, 8)[0] / 2


@pytest.mark.slow
def test_a_deceptive_model_still_uses_the_words_that_it_hides() -> None:
    """Test labels contradict the text: a model that reads anything else is wrong."""
    task = planted("token", 900)
    honest, hiding = (trained(task, name, 12, 16) for name in ("", "deception:lam=1"))
    assert honest[0] > 0.3
    assert hiding[0] < 0.05
    assert min(honest[1], hiding[1]) > 0.95
