"""The table of architectures: all that access promises, asked of a tiny model of each (tests.models.architectures)."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.huggingface.architectures import ARCHITECTURES, listing
from exegete.models.huggingface.attention import CROSS, NAME, AttentionPass, input_embeddings
from exegete.models.huggingface.sites import Access, probe_sites, reading
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.projections import Projection
from tests.models.architectures import LENGTHS, MADE, REFUSED, each_of, inputs, tiny

EQUAL, CLOSE, FELT = 1e-6, 1e-5, 1e-4
READ = each_of(sorted(MADE))


@pytest.fixture(params=READ)
def base(request: pytest.FixtureRequest) -> Any:
    return tiny(request.param)


@pytest.fixture
def access(base: Any) -> Access:
    return probe_sites(base, inputs(base, 0))


def run(base: Any, access: Access, hook: Any = None, text: int | None = None) -> tuple[Tensor, AttentionPass]:
    """Logits where texts are, and the run."""
    at = (lambda name: None) if hook is None else (lambda name: hook(name))
    with torch.no_grad(), reading(base, access, at) as found:
        logits = base(**inputs(base, text)).logits
    return logits, found


def real(base: Any, logits: Tensor) -> Tensor:
    """Without what is predicted at padding."""
    if logits.dim() == 2 or base.config.is_encoder_decoder:
        return logits
    return logits[inputs(base)["attention_mask"].bool()]


def on_last(name: str) -> AttentionHook:
    """All weight of a row on the last key that it may look at."""
    del name

    def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
        del scores, project
        allowed = mask.expand_as(weights)
        return (allowed & (allowed.long().cumsum(-1) == allowed.sum(-1, keepdim=True))).to(weights.dtype)

    return hook


def only_at(site: str) -> Any:
    return lambda name: on_last(name) if name == site else None


def test_every_readable_architecture_is_made_here() -> None:
    assert set(MADE) == {name for name, each in ARCHITECTURES.items() if each.way != "refused"}
    assert set(listing()) == set(ARCHITECTURES)


def test_the_page_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "access.md").read_text(encoding="utf8")
    for name, each in ARCHITECTURES.items():
        assert f"| `{name}` | {each.way} | {each.said} |" in page


def test_the_access_is_as_listed(base: Any, access: Access) -> None:
    assert access.way == ARCHITECTURES[base.config.model_type].way
    assert len(access.sites) == (6 if base.config.is_encoder_decoder else 2)
    assert sorted(access.sites) == sorted(site for names in access.names.values() for site in names)


def test_read_it_computes_what_eager_computes(base: Any, access: Access) -> None:
    before = base.config._attn_implementation
    base.set_attn_implementation("eager")
    with torch.no_grad():
        own = base(**inputs(base)).logits
    base.set_attn_implementation(before)
    ours, _ = run(base, access)
    assert (real(base, own) - real(base, ours)).abs().max() <= EQUAL


def test_other_weights_at_every_site_change_logits(base: Any, access: Access) -> None:
    own, _ = run(base, access)
    for site in access.sites:
        other, _ = run(base, access, only_at(site))
        assert (real(base, own) - real(base, other)).abs().max() > FELT, site


def test_rows_sum_to_what_they_must_and_padding_has_none(base: Any, access: Access) -> None:
    _, found = run(base, access)
    for site, weights in found.weights.items():
        total = weights.sum(-1)
        seen = total > 0
        sinks = base.config.model_type == "gpt_oss"
        assert bool((total < 1 + CLOSE).all())
        assert sinks or torch.allclose(total[seen], torch.ones_like(total[seen]), atol=CLOSE)
        assert not sinks or bool((total[seen] < 1 - CLOSE).any())
        if weights.shape[-1] == max(LENGTHS):  # keys are the padded text
            assert not weights[1, ..., LENGTHS[1] :].any(), site
        if weights.shape[-2] == weights.shape[-1] == max(LENGTHS):
            assert not weights[1, :, LENGTHS[1] :].any(), site
        assert found.states[site].shape[:2] == (2, weights.shape[-1])


def test_who_looks_back_only_sees_nothing_later(base: Any, access: Access) -> None:
    _, found = run(base, access)
    for site, weights in found.weights.items():
        ahead = weights.triu(1).abs().sum() if not site.startswith(CROSS) else torch.zeros(())
        assert (ahead == 0) == (not site.startswith("encoder")), site


def test_a_text_alone_and_in_a_batch_is_read_alike(base: Any, access: Access) -> None:
    together, batch = run(base, access)
    for text, length in enumerate(LENGTHS):
        alone, single = run(base, access, text=text)
        steps = 4 if base.config.is_encoder_decoder else length
        own = together[text] if together.dim() == 2 else together[text, :steps]
        assert torch.allclose(own, alone[0], atol=CLOSE, rtol=CLOSE)
        for site, weights in single.weights.items():
            inside = batch.weights[site][text][:, : weights.shape[2], : weights.shape[3]]
            assert torch.allclose(inside, weights[0], atol=CLOSE), site


def test_gradients_reach_given_embeddings(base: Any, access: Access) -> None:
    given = inputs(base)
    vectors = input_embeddings(base)(given["input_ids"]).detach().requires_grad_()
    with reading(base, access, keep=(), vectors=vectors):
        logits = base(**given).logits
    own, _ = run(base, access)
    assert torch.allclose(real(base, logits), real(base, own), atol=EQUAL)
    (slope,) = torch.autograd.grad(real(base, logits).square().sum(), vectors)
    felt = slope.abs().sum(-1) > 0
    assert felt[0].any()
    assert felt[1].any()
    assert not felt[1, LENGTHS[1] :].any()


def test_everything_is_undone_also_after_an_exception(base: Any, access: Access) -> None:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    before = base.config._attn_implementation
    with torch.no_grad():
        own = base(**inputs(base)).logits

    def fail(name: str) -> AttentionHook:
        raise ArithmeticError(name)

    with pytest.raises(ArithmeticError):
        run(base, access, fail)
    assert base.config._attn_implementation == before != NAME
    assert not any(getattr(part, name) for part in base.modules() for name in hooks)
    with torch.no_grad():
        assert torch.equal(base(**inputs(base)).logits, own)


@pytest.mark.parametrize("model_type", sorted(REFUSED))
def test_others_are_refused_with_the_reason(model_type: str) -> None:
    with pytest.raises(UsageError, match=ARCHITECTURES[model_type].said.split(":")[0]):
        probe_sites(tiny(model_type), inputs(tiny(model_type), 0))


def test_what_passes_by_the_interface_is_refused_unless_it_was_tried() -> None:
    model = tiny("mpnet")
    before, model.config.model_type = model.config.model_type, "unheard-of"
    try:
        with pytest.raises(UsageError, match="passes by transformers' attention interface"):
            probe_sites(model, inputs(model, 0))
    finally:
        model.config.model_type = before
