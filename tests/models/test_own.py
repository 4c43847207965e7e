"""Own models: the user's module as it is; batch = single, padding changes nothing, weights can be rewritten."""

import copy
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.experiments.common.pooling import open_pooled
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.search import Search, find
from exegete.models.capabilities import Pooling
from exegete.models.contract import Intervention, Site
from exegete.models.openings import unpooled
from exegete.models.own.classifier import Own
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary
from tests.models.own_models import EXAMPLE, GENERAL, POOLING, own, pooled_own, written
from tests.small import texts

EXAMPLES = (*texts(6, longest=7), Example(6, (("a",),), 0), Example(7, (tuple("abcde"),), 1))


@pytest.fixture(params=["example", "pooling", "general"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Own:
    """The file of the examples, a model with a linear decoder, and one with several sites and heads."""
    if request.param == "example":
        return own(f"own:file={EXAMPLE}")
    return own(written(tmp_path, POOLING if request.param == "pooling" else GENERAL))


def seen_by(seen: list[Site]) -> Intervention:
    """Changes nothing, and remembers."""

    def look(site: Site) -> Tensor:
        seen.append(site)
        return site.weights

    return look


def _batch(model: Own) -> Batch:
    return collate(EXAMPLES, model.vocabulary)


def test_the_adapter_of_the_example_is_short() -> None:
    lines = EXAMPLE.read_text(encoding="utf8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("class Adapter"))
    assert len(lines) - start <= 30


def test_logits_are_those_of_the_module_as_its_author_runs_it() -> None:
    model = own(f"own:file={EXAMPLE}")
    batch = _batch(model)
    theirs: Tensor = model.own.module(batch.tokens, batch.lengths)  # type: ignore[operator]
    assert torch.allclose(model.trace(batch).logits, theirs, atol=1e-6)


def test_sites_are_the_names_that_attend_was_called_with(tmp_path: Path) -> None:
    model = own(written(tmp_path, GENERAL))
    trace = model.trace(_batch(model))
    assert model.sites == ("self", "pool")
    assert trace.attention["self"].shape == (8, 2, 7, 7)
    assert trace.attention["pool"].shape == (8, 2, 1, 7)
    assert trace.states["pool"].shape == (8, 7, 6)
    assert trace.owner["self"].shape == (8, 7)


def test_an_intervention_that_changes_nothing_changes_nothing_and_another_does(model: Own) -> None:
    batch = _batch(model)
    whole = model.trace(batch)
    assert torch.equal(model.trace(batch, intervene=lambda site: site.weights).logits, whole.logits)
    seen: list[Site] = []

    def turned(site: Site) -> Tensor:
        seen.append(site)
        return site.weights.flip(-1).where(site.mask, 0.0)

    several = batch.lengths > 1
    assert bool((model.trace(batch, intervene=turned).logits != whole.logits).any(-1)[several].all())
    assert [site.name for site in seen] == [*model.sites]
    seen.clear()
    model.trace(batch, intervene=seen_by(seen))
    for site in seen:  # the projection of the scores is the weights: nothing else has made them
        assert torch.allclose(site.project(site.scores, site.mask), whole.attention[site.name], atol=1e-6)
        rows = whole.attention[site.name].sum(-1)
        assert torch.allclose(rows, site.mask.any(-1).to(rows.dtype).expand_as(rows), atol=1e-5)


@pytest.mark.parametrize("name", ["uniform", "permute", "random", "remove"])
def test_interventions_of_the_catalogue_stay_inside_the_mask(model: Own, name: str) -> None:
    batch = _batch(model)
    trace = model.trace(batch, intervene=bound(INTERVENTIONS.make(name), model))
    for weights in trace.attention.values():
        assert float(weights.masked_fill(batch.words[:, None, None], 0.0).abs().sum()) == 0
    assert bool(trace.logits.isfinite().all())


@pytest.mark.parametrize("baseline", ["zero", "mean"])
def test_integrated_gradients_are_complete(model: Own, baseline: str) -> None:
    scores = IMPORTANCES.make(f"integrated_gradients:baseline={baseline},bound=0.005")(model, _batch(model))
    assert scores.error is not None
    assert float(scores.error.max()) <= 0.005


def test_leave_one_out_runs_the_text_without_the_word(model: Own) -> None:
    scores = IMPORTANCES.make("leave_one_out:of=logit")(model, _batch(model))
    for i, e in enumerate(EXAMPLES):
        whole = model.trace(collate([e], model.vocabulary)).logits[0]
        c = int(whole.argmax())
        for t in range(len(e)):
            rest = Example(0, (e.words[:t] + e.words[t + 1 :],), 0)
            without = model.trace(collate([rest], model.vocabulary)).logits[0]
            assert float(scores.values[i, t]) == pytest.approx(float(whole[c] - without[c]), abs=1e-5)


def test_a_text_without_words_has_no_weights_and_finite_logits(model: Own) -> None:
    empty = Example(0, ((),), 0)
    alone = model.trace(collate([empty], model.vocabulary))
    beside = model.trace(collate([empty, EXAMPLES[0]], model.vocabulary))
    assert torch.allclose(alone.logits[0], beside.logits[0], atol=1e-6)
    assert all(float(weights.abs().sum()) == 0 for weights in alone.attention.values())


# What pools.


@pytest.mark.parametrize("linear", [True, False])
def test_decoded_slowly_it_is_the_weighted_sum_of_states(linear: bool, tmp_path: Path) -> None:
    model = pooled_own(written(tmp_path, POOLING) if linear else f"own:file={EXAMPLE}")
    batch = _batch(model)
    encoded = model.encode(batch)
    assert (encoded.values is not None) == linear
    draws = torch.rand(8, 3, batch.tokens.shape[1]).masked_fill(~batch.words[:, None], 0.0)
    found = model.decode(encoded, draws)
    for i in range(8):
        for d in range(3):
            context = torch.zeros(encoded.states.shape[-1])
            for t in range(batch.tokens.shape[1]):
                context += draws[i, d, t] * encoded.states[i, t].detach()
            slow = model.own.decode(context[None])[0]
            assert torch.allclose(found[i, d], slow, atol=1e-5)
    double = model.decode(encoded.to(torch.float64), draws.double())
    assert double.dtype == torch.float64
    assert torch.allclose(double, found.double(), atol=1e-5)


@pytest.mark.parametrize("text", [POOLING, None])
def test_pooled_and_searched(text: str | None, tmp_path: Path) -> None:
    model = own(written(tmp_path, text) if text else f"own:file={EXAMPLE}")
    assert unpooled(model) is None
    for pool in open_pooled(model, EXAMPLES):
        logits = model.trace(collate([EXAMPLES[i] for i in pool.members], model.vocabulary)).logits
        assert torch.allclose(pool.logits, logits.double(), atol=1e-5)
        found = find(pool.opened, Search(steps=3))
        assert float((found.weights.sum(-1) - 1).abs().max()) < 1e-9


def test_a_decoder_that_starts_at_zero_is_asked_again(tmp_path: Path) -> None:
    body = POOLING.replace(
        "nn.Linear(size, classes)", "nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, classes))"
    )
    model = pooled_own(written(tmp_path, body + "    # zero\n"))
    last: nn.Linear = model.own.out[-1]  # type: ignore[index,assignment]
    with torch.no_grad():
        kept = copy.deepcopy(last.weight)
        last.weight.zero_()
        assert model.encode(_batch(model)).values is not None
        last.weight.copy_(kept)
    assert model.encode(_batch(model)).values is None


def test_what_decides_the_weights_is_found(tmp_path: Path) -> None:
    model = own(written(tmp_path, POOLING))
    names = {name for name, p in model.named_parameters() if any(p is q for q in model.attention_parameters())}
    assert names == {"own.query.weight", "own.query.bias"}
    general = own(written(tmp_path, GENERAL, "general.py"))
    assert [*general.attention_parameters()] == []


def test_what_does_not_pool_says_so(tmp_path: Path) -> None:
    model = own(written(tmp_path, GENERAL))
    assert "doesn't say that it has one" in (unpooled(model) or "")
    assert not isinstance(model, Pooling)


@pytest.mark.parametrize("projection", ["sparsemax", "sparsegen,lam=0.5", "entmax,learned=true", "gates"])
def test_the_projection_is_a_setting(projection: str, tmp_path: Path) -> None:
    model = own(f"{written(tmp_path, POOLING)},projection={projection}")
    weights = model.trace(_batch(model)).attention["attention"]
    if projection == "gates":
        assert float(weights.sum(-1).max()) < 1
    else:
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)


def test_allowed_keys(tmp_path: Path) -> None:
    body = GENERAL.replace(
        'attend("self", q @ k.mT, embedded)',
        'attend("self", q @ k.mT, embedded, allowed=torch.ones(q.shape[2], q.shape[2]).tril().bool())',
    )
    model = own(written(tmp_path, body))
    weights = model.trace(_batch(model)).attention["self"]
    assert float(weights.triu(1).abs().sum()) == 0
    assert float(weights[7, 0, 2, :3].sum()) == pytest.approx(1, abs=1e-5)


def test_softmax_by_hand(tmp_path: Path) -> None:
    model = own(written(tmp_path, POOLING))
    e = EXAMPLES[7]
    adapter = model.own
    rows = torch.tensor(model.vocabulary.rows(e.words))
    states = adapter.layer(adapter.table(rows)).tanh()  # type: ignore[operator]
    z = [3 * float(adapter.query(h)) for h in states]  # type: ignore[operator]
    expected = [math.exp(s) / sum(map(math.exp, z)) for s in z]
    found = model.trace(collate([e], model.vocabulary)).attention["attention"][0, 0, 0]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


# Its own words and classes.


@pytest.mark.parametrize("kind", ["dict", "list"])
def test_a_vocabulary_of_its_own(kind: str, tmp_path: Path) -> None:
    words = ["c", "<UNK>", "a", "<pad>", "b"]
    said = repr(words if kind == "list" else {word: row for row, word in enumerate(words)})
    body = POOLING.replace("Adapter(len(words), len(labels))", "Adapter(5, 2)")
    model = own(written(tmp_path, body.replace("def __init__", f"vocabulary = {said}\n    def __init__", 1)))
    batch = collate([Example(0, (tuple("abzc"),), 0), Example(1, (("c",),), 0)], model.vocabulary)
    table = model.own.table.weight  # type: ignore[union-attr]
    expected = torch.stack([table[row] for row in (2, 4, 1, 0)])  # type: ignore[index]
    assert torch.equal(model.embed(batch)[0], expected)
    assert torch.equal(model.embed(batch)[1, 1], table[3])  # type: ignore[index]
    assert torch.equal(model.tables[0].weight[model.vocabulary.index["b"]], table[4])  # type: ignore[index]


def test_unknown_words_must_have_a_row(tmp_path: Path) -> None:
    body = POOLING.replace("Adapter(len(words), len(labels))", "Adapter(5, 2)")
    with pytest.raises(UsageError, match="which word stands for unknown ones"):
        own(written(tmp_path, body.replace("def __init__", "vocabulary = ['a', 'b']\n    def __init__", 1)))
    named = "vocabulary, unknown = ['a', 'b'], 'b'\n    def __init__"
    assert own(written(tmp_path, body.replace("def __init__", named, 1), "named.py")).vocabulary.words == ("a",)


def test_classes_in_the_modules_own_order(tmp_path: Path) -> None:
    plain = own(written(tmp_path, POOLING, "plain.py"))
    body = POOLING.replace("def __init__", "labels = ['yes', 'no']\n    def __init__", 1)
    turned = pooled_own(written(tmp_path, body))
    batch = _batch(plain)
    assert torch.equal(turned.trace(batch).logits, plain.trace(batch).logits.flip(-1))
    encoded = turned.encode(batch)
    assert torch.allclose(
        turned.decode(encoded, turned.project(encoded.scores, encoded.mask)[:, None])[:, 0],
        turned.trace(batch).logits,
        atol=1e-5,
    )
    other = POOLING.replace("def __init__", "labels = ['good', 'bad']\n    def __init__", 1)
    with pytest.raises(UsageError, match="predicts the classes good, bad, and the task has no, yes"):
        own(written(tmp_path, other, "other.py"))


def test_a_vocabulary_of_one_word_is_no_reason_to_refuse(tmp_path: Path) -> None:
    assert own(written(tmp_path, POOLING), Vocabulary(("a",))).sites == ("attention",)
