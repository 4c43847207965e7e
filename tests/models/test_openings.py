"""Opened: own weights are the model's own logits, imposed ones those of a trace; a pass is a decoder; gradients."""

import itertools
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.permute import permuted_together
from exegete.models import openings as module
from exegete.models.build import make_classifier
from exegete.models.contract import Intervention, Site
from exegete.models.openings import OpenedPooling, Pass, decoder, opened, passing, unopened
from exegete.models.ours.module import Model
from tests.models.own_models import GENERAL, POOLING, own, written
from tests.small import PAIRS, SPECS, TRANSFORMERS, batch_of, pairs, small_model, texts, vocabulary

EXAMPLES = texts(14, seed=5)
DEEP = ("hierarchical:size=7,hidden=6,scale=1", "flat:size=7,hidden=6,scale=1", "rationale:size=7,hidden=6,scale=1")
LADDER = "ladder:size=7,scale=1,share=0.5"
BESIDE = GENERAL.replace(
    'return self.out((attend("pool", self.pool(x).mT, x) @ x).flatten(1))',
    "w = mask / mask.sum(-1, keepdim=True)\n"
    "        return self.out(torch.cat([(w[:, None] @ x)[:, 0]] * 2, -1).tanh())",
)  # self-attention alone, whose states are averaged: a query per token is read


def imposed(name: str, weights: Tensor) -> Intervention:
    """Weights [batch, head, key] at a site, for every query."""

    def rewrite(site: Site) -> Tensor:
        if site.name != name:
            return site.weights
        return weights.view(*weights.shape[:1], -1, site.weights.shape[2], weights.shape[-1]).to(site.weights.dtype)

    return rewrite


def models(folder: Path) -> list[tuple[Model, bool]]:
    """Every kind of classifier, and whether it pools."""
    ours = [*SPECS, *TRANSFORMERS, *DEEP]
    found: list[tuple[Model, bool]] = [(small_model(spec, EXAMPLES), True) for spec in ours]
    found += [(small_model(spec, pairs(9), labels=("a", "b", "c")), True) for spec in PAIRS]
    torch.manual_seed(0)
    ladder = make_classifier(LADDER, vocabulary(EXAMPLES, True), ("no", "yes")).eval()
    files = [(POOLING, True), (GENERAL, False), (BESIDE, False)]
    owns = [(own(written(folder, text, f"m{i}.py")), pools) for i, (text, pools) in enumerate(files)]
    return [*found, (ladder, True), *owns]


def test_weights_give_the_logits_of_a_trace(tmp_path: Path) -> None:
    for model, pools in models(tmp_path):
        batch = batch_of(model, pairs(9) if model.name == "pair" else EXAMPLES)
        with torch.no_grad():
            found, trace = opened(model, batch), model.trace(batch)
            assert isinstance(found, OpenedPooling if pools else Pass)
            assert torch.allclose(found.own, trace.logits.double(), atol=1e-5), model.spec
            own_weights = trace.attention[model.sites[-1]].flatten(1, 2).double()
            assert torch.allclose(found.weights, own_weights, atol=1e-6)
            draws = permuted_together(found.weights, found.mask, batch.ids, 1, 3)
            assert draws.shape == (len(batch.ids), 3, *found.weights.shape[1:])
            logits = found.logits(draws)
            for draw in range(3):
                other = model.trace(batch, intervene=imposed(model.sites[-1], draws[:, draw])).logits
                assert torch.allclose(logits[:, draw], other.double(), atol=1e-5), model.spec


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[3], TRANSFORMERS[0], DEEP[0]])
def test_a_pass_is_a_decoder(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits and their gradients by the weights, in one pass and in many."""
    model = small_model(spec, EXAMPLES)
    batch = batch_of(model, EXAMPLES)
    fast, slow = opened(model, batch), passing(model, batch, model.sites[-1])
    assert torch.equal(fast.mask, slow.mask)
    assert torch.allclose(fast.weights, slow.weights, atol=1e-6)
    torch.manual_seed(1)
    drawn = torch.randn(len(EXAMPLES), 4, 1, fast.mask.shape[1]).double().masked_fill(~fast.mask[:, None, None], -99)
    leaf = drawn.softmax(-1).requires_grad_()
    found = {}
    for name, room in (("decoder", 0), ("one pass", 1 << 15), ("many", 40)):
        monkeypatch.setattr(module, "TOKENS", room)
        logits = (slow if room else fast).logits(leaf)
        (gradient,) = torch.autograd.grad((logits[..., 1] * torch.arange(1, 5)).sum(), leaf)
        found[name] = (logits, gradient * fast.mask[:, None, None])
    for name in ("one pass", "many"):
        for ours, theirs in zip(found[name], found["decoder"], strict=True):
            assert torch.allclose(ours, theirs, atol=2e-5), name


def test_gradients_are_differences(tmp_path: Path) -> None:
    """Of a model with two heads, in float64, by central differences of whole traces."""
    model = own(written(tmp_path, GENERAL)).double()
    batch = batch_of(model, EXAMPLES[:4])
    found = opened(model, batch)
    leaf = found.weights[:, None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(found.logits(leaf)[..., 1].sum(), leaf)
    step = 1e-5
    for text, head, key in itertools.product(range(4), range(2), range(batch.tokens.shape[1])):
        if not found.mask[text, key]:
            continue
        sides = []
        for sign in (1, -1):
            moved = found.weights.clone()
            moved[text, head, key] += sign * step
            sides.append(float(model.trace(batch, intervene=imposed("pool", moved)).logits[text, 1]))
        assert float(gradient[text, 0, head, key]) == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-6)


def test_an_intervention_and_another_site(tmp_path: Path) -> None:
    """What rewrites the attention before decides the own weights, and goes on to act elsewhere."""
    model = own(written(tmp_path, GENERAL))
    batch = batch_of(model, EXAMPLES)

    def flat(site: Site) -> Tensor:
        mask = site.mask.expand_as(site.weights)
        return mask / mask.sum(-1, keepdim=True).clamp(min=1)

    for site in ("pool", "self"):
        found, trace = opened(model, batch, site=site, intervene=flat), model.trace(batch, intervene=flat)
        assert torch.allclose(found.own, trace.logits.double(), atol=1e-6)
        assert torch.allclose(found.weights, trace.attention[site].flatten(1, 2).double(), atol=1e-6)
        leading = found.mask & (found.mask.long().cumsum(-1) == 1)
        first = leading[:, None].double() * (found.weights > 0).any(-1, keepdim=True)
        there = {site: imposed(site, first)}  # all weight on the first key, in rows that have any
        both = model.trace(batch, intervene=lambda at, there=there: there.get(at.name, flat)(at))  # type: ignore[misc]
        assert torch.allclose(found.logits(first[:, None])[:, 0], both.logits.double(), atol=1e-5)
        assert not torch.allclose(both.logits, trace.logits, atol=1e-3)
    with pytest.raises(UsageError, match="unknown site 'nowhere'"):
        opened(model, batch, site="nowhere")


def test_a_row_keeps_to_what_it_may_look_at(tmp_path: Path) -> None:
    """Under a causal mask the first query has one key: whatever it is given, all of it goes there."""
    causal = BESIDE.replace("q @ k.mT, embedded)", "q @ k.mT, embedded, torch.ones_like(q @ k.mT).tril().bool())")
    model = own(written(tmp_path, causal))
    batch = batch_of(model, [e for e in EXAMPLES if len(e) == len(EXAMPLES[0])])
    found, keys = opened(model, batch), batch.tokens.shape[1]
    assert torch.allclose(found.own, model.trace(batch).logits.double(), atol=1e-6)
    met: list[Tensor] = []

    def watch(site: Site) -> Tensor:
        even = torch.full_like(site.weights, 1 / keys).tril()
        met.append(even / even.sum(-1, keepdim=True))
        return met[-1]

    expected = model.trace(batch, intervene=watch).logits.double()
    even = torch.full_like(found.weights, 1 / keys)
    assert torch.allclose(found.logits(even[:, None])[:, 0], expected, atol=1e-6)


def test_one_permutation_moves_all_heads() -> None:
    torch.manual_seed(0)
    weights = torch.rand(5, 3, 6).double()
    mask = torch.tensor([[True] * 4 + [False] * 2] * 5)
    weights = weights * mask[:, None]
    drawn = permuted_together(weights, mask, torch.arange(5), 2, 7)
    for text, draw in itertools.product(range(5), range(7)):
        where = [weights[text, 0].tolist().index(w) for w in drawn[text, draw, 0, :4].tolist()]
        assert sorted(where) == [0, 1, 2, 3]
        assert torch.equal(drawn[text, draw, :, :4], weights[text][:, where])
    assert not drawn[..., 4:].any()


def test_a_model_without_attention_is_refused() -> None:
    model = make_classifier("bilstm:attention=none,size=7,hidden=6", vocabulary(EXAMPLES), ("no", "yes")).eval()
    assert "from which a class is predicted" in (unopened(model) or "")
    with pytest.raises(UsageError, match="has none"):
        opened(model, batch_of(model, EXAMPLES))


def test_given_weights_are_the_own_ones() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    batch = batch_of(model, EXAMPLES)
    even = batch.words / batch.words.sum(-1, keepdim=True)
    found = decoder(model, model.encode(batch).to(torch.float64), batch.ids, even)
    expected = model.trace(batch, intervene=imposed("attention", even[:, None])).logits
    assert torch.allclose(found.own, expected.double(), atol=1e-5)
