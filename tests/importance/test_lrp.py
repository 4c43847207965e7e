"""LRP: whole models against plain Python, conservation across the zoo, and decompositions that are known."""

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Scores, Target, refusal
from exegete.importance.lrp import Lrp, relevance
from exegete.importance.relevance import RULES, Dials, Received, Shares
from exegete.models.ours.classifier import Classifier, PoolingClassifier
from exegete.tasks.example import Example
from tests.small import batch_of, small_classifier, texts, vocabulary

ZOO = (
    "bilstm:size=5,hidden=4,scale=1",
    "bilstm:size=5,hidden=4,scale=1,attention=dot,projection=sparsemax,outputs=classes",
    "bigru:size=5,hidden=4,scale=1",
    "bigru:size=5,hidden=4,scale=1,attention=dot,projection=entmax,alpha=1.3,outputs=classes",
    "average:size=5,hidden=4,scale=1,projection=entmax,learned=true",
    "average:size=5,hidden=4,scale=1,activation=relu,projection=sparsegen,lam=0.5,outputs=classes",
    "cnn:size=5,hidden=8,scale=1",
    "cnn:size=5,hidden=8,scale=1,attention=dot,projection=sparsemax,outputs=classes",
)
CLASSES = {2: ("no", "yes"), 3: ("x", "y", "z")}


def of_lengths(*lengths: int) -> list[Example]:
    words = "".join("".join(e.words) for e in texts(40, seed=3))
    return [Example(i, (tuple(words[i * 12 : i * 12 + n]),), 0) for i, n in enumerate(lengths)]


def check_conservation(spec: str, wrap: bool, classes: int, *lengths: int) -> None:
    examples, rows = of_lengths(*lengths), torch.arange(len(lengths))
    model = small_classifier(spec, examples, wrap, CLASSES[classes])
    batch, target = batch_of(model, examples), Target(rows % classes)
    logit = model.trace(batch).logits[rows, target.label].double()
    found = relevance(model, batch, target, Dials(0.001, True))
    parts = torch.cat([found.tokens, found.initial], -1)
    assert batch.lengths.tolist() == [*lengths]
    assert torch.allclose(parts.sum(-1), logit, atol=1e-5)
    assert torch.equal(found.error, (parts.sum(-1) - found.logit).abs() / parts.abs().sum(-1))
    assert found.error.max() < 1e-12
    assert found.initial.shape[1] == {"bilstm": 4, "bigru": 2}.get(model.name, 0)
    assert found.tokens[~batch.present].abs().sum() == 0


@pytest.mark.parametrize("spec", ZOO)
def test_the_parts_sum_to_the_logit_of_the_model(spec: str) -> None:
    check_conservation(spec, "dot" in spec, 2, 1, 2, 7, 12)


@pytest.mark.parametrize("spec", ZOO[::2])
def test_the_parts_sum_to_the_logit_of_any_of_three_classes(spec: str) -> None:
    check_conservation(spec, True, 3, 1, 4, 6)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", ZOO)
def test_the_parts_sum_to_the_logit_everywhere(spec: str, wrap: bool, classes: int) -> None:
    check_conservation(spec, wrap, classes, *range(1, 13))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", ["bilstm:size=5,hidden=4,scale=3", "bigru:size=5,hidden=4,scale=3"])
def test_conservation_under_other_weights_and_large_ones(spec: str, seed: int) -> None:
    examples = texts(3, seed, longest=12)
    torch.manual_seed(seed)
    model = Classifier(spec, vocabulary(examples), ("no", "yes"))
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.mul_(10 * seed)  # 0: states and contexts are all zero, and every sgn is sgn 0
    error = Lrp()(model, batch_of(model, examples)).error
    assert error is not None
    assert error.max() < 1e-9


def without_biases(spec: str) -> PoolingClassifier:
    model = small_classifier(spec, texts(12))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.zero_()
    return model


@pytest.mark.parametrize("spec", ["bilstm:size=5,hidden=4,scale=1", "bigru:size=5,hidden=4,scale=1", *ZOO[5:7]])
def test_biases_that_keep_their_part_lose_it_and_the_error_says_so(spec: str) -> None:
    examples = texts(4)
    model, bare = small_classifier(spec, examples), without_biases(spec)
    batch = batch_of(model, examples)
    lost, none = (Lrp(bias=False)(m, batch).error for m in (model, bare))
    assert lost is not None
    assert none is not None
    assert lost.min() > 1e-3
    assert none.max() < 1e-12
    assert torch.allclose(Lrp(bias=False)(bare, batch).values, Lrp()(bare, batch).values, equal_nan=True)


@pytest.mark.parametrize("kind", [*RULES])
def test_the_error_finds_a_broken_rule(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(3)
    model = small_classifier(ZOO[6 if kind in ("convolution", "relu") else 0], examples)
    batch = batch_of(model, examples)
    right = RULES[kind].share

    def leaky(out: Received, *arguments: torch.Tensor) -> Shares:
        return tuple(None if part is None else 0.99 * part for part in right(out, *arguments))

    before = Lrp()(model, batch)
    monkeypatch.setitem(RULES, kind, RULES[kind]._replace(share=leaky))
    after = Lrp()(model, batch)
    assert before.error is not None
    assert after.error is not None
    assert before.error.max() < 1e-12
    assert after.error.min() > 1e-4


def test_initial_states_absorb_most_in_short_texts() -> None:
    examples = of_lengths(1, 12)
    model = small_classifier(ZOO[0], examples)
    found = relevance(model, batch_of(model, examples), None, Dials(0.001, True))
    share = found.initial.abs().sum(-1) / (found.initial.abs().sum(-1) + found.tokens.abs().sum(-1))
    assert share[0] > 0.05
    assert share[-1] < share[0]


def test_what_can_be_explained_and_on_what() -> None:
    class Other(PoolingClassifier):
        pass

    examples = texts(4)
    model = small_classifier(ZOO[0], examples)
    batch = batch_of(model, examples)
    assert refusal(Lrp(), model) is None
    other = Other(ZOO[0], model.vocabulary, model.labels)
    assert "no rules for the layers of Other" in (refusal(Lrp(), other) or "")
    with pytest.raises(UsageError, match="no rules"):
        Lrp()(other, batch)
    with pytest.raises(UsageError, match="not its probability"):
        Lrp()(model, batch, Target(batch.label, of="probability"))
    for epsilon in ("0", "-1", "nan", "inf"):
        with pytest.raises(UsageError, match="epsilon is a number above 0"):
            IMPORTANCES.make(f"lrp:epsilon={epsilon}")
    assert IMPORTANCES.make("lrp:bias=false") == Lrp(bias=False)


@pytest.mark.parametrize("spec", ZOO[::2])
def test_the_model_stays_as_it_was_and_no_gradient_mode_is_needed(spec: str) -> None:
    examples = texts(3, longest=4)
    model = small_classifier(spec, examples)
    batch = batch_of(model, examples)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    outside: Scores = Lrp()(model, batch)
    with torch.no_grad():
        inside: Scores = Lrp()(model, batch)
    assert torch.allclose(outside.values, inside.values, equal_nan=True)
    assert all(torch.equal(p, before[name]) and p.grad is None for name, p in model.named_parameters())
    assert outside.cost is not None
    assert outside.cost.forward.tolist() == outside.cost.backward.tolist() == [1] * 3


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", ZOO[::2])
def test_a_text_without_words_leaves_its_logit_unexplained(spec: str, wrap: bool) -> None:
    examples = (*texts(3, longest=3), Example(3, ((),), 0))
    model = small_classifier(spec, examples, wrap)
    scores = Lrp()(model, batch_of(model, examples))
    assert scores.values[3].isnan().all()
    assert scores.error is not None
    assert scores.error[3] == 1
    assert scores.error[:3].max() < 1e-12
