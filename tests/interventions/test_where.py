"""Where an intervention acts: sites, windows of layers, heads; what isn't there is refused; rows keep their sum."""

from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound, renewed
from exegete.interventions.permute import Permute
from exegete.interventions.restriction import AtHeads, AtSites
from exegete.interventions.sites import Head, choose_sites, group_sites
from exegete.interventions.uniform import Uniform
from exegete.models.contract import Site
from exegete.models.huggingface.attention import PieceSoftmax
from exegete.tasks.example import Example
from tests.interventions.sites import batch_of_words, site_of
from tests.models.tiny import SMALL, bert, byte_pieces, drawn, in_memory
from tests.small import batch_of, small_model, texts

SITES = ("encoder.0", "encoder.1", "encoder.2", "encoder.3", "attention")
TEXTS = texts(5)


def model() -> Any:
    return small_model("transformer:size=6,hidden=8,heads=4,inner=10,scale=1,layers=4", TEXTS)


@pytest.mark.parametrize(
    ("where", "sites"),
    [
        ("every", SITES),
        ("encoder", SITES[:4]),
        ("encoder.2", ("encoder.2",)),
        ("encoder.1-2", SITES[1:3]),
        ("encoder.-1", SITES[:2]),
        ("encoder.2-", SITES[2:4]),
        ("encoder.3-3", ("encoder.3",)),
        ("attention", ("attention",)),
    ],
)
def test_a_place_is_the_sites_that_it_names(where: str, sites: tuple[str, ...]) -> None:
    assert choose_sites(where, SITES) == sites
    net = model()
    batch = batch_of(net, TEXTS)
    with torch.no_grad():
        found = net.trace(batch, intervene=bound(Uniform(where), net))
        same = net.trace(batch, intervene=AtSites(sites, Uniform()))
    torch.testing.assert_close(found.logits, same.logits, atol=0, rtol=0)
    for site in SITES:
        spread = found.attention[site].amax(-1) - found.attention[site].where(found.attention[site] > 0, 9).amin(-1)
        assert (float(spread.max()) < 1e-6) == (site in sites)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("encoder.9", "unknown site 'encoder.9': did you mean 'encoder"),
        ("encoder.2-7", "no layer 7; encoder has layers encoder.0 to encoder.3"),
        ("encoder.3-1", "lower end first, as encoder.1-3"),
        ("decoder.0-1", "unknown group of layers in site 'decoder.0-1' 'decoder'"),
        ("attention.0-1", "unknown group of layers"),
        ("encoder.-", "unknown site 'encoder.-'"),
        ("nowhere", "unknown site 'nowhere'"),
    ],
)
def test_a_place_that_is_not_there_is_refused(where: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        bound(INTERVENTIONS.make(f"uniform:site={where}"), model())


def test_a_head_is_rewritten_alone() -> None:
    net = model()
    batch = batch_of(net, TEXTS)
    at = bound(INTERVENTIONS.make("uniform:site=encoder.1,head=2"), net)
    with torch.no_grad():
        own, found, all_heads = (net.trace(batch, intervene=each) for each in (None, at, Uniform("encoder.1")))
    weights = found.attention["encoder.1"]
    torch.testing.assert_close(weights[:, 2], all_heads.attention["encoder.1"][:, 2], atol=0, rtol=0)
    others = [0, 1, 3]
    torch.testing.assert_close(weights[:, others], own.attention["encoder.1"][:, others], atol=0, rtol=0)
    assert not torch.allclose(weights[:, 2], own.attention["encoder.1"][:, 2])
    assert not torch.allclose(found.logits, own.logits)


@pytest.mark.parametrize("head", [4, -1])
def test_a_head_that_is_not_there_is_refused(head: int) -> None:
    net = model()
    with pytest.raises(UsageError, match=rf"no head {head} at site 'encoder.1': it has heads 0 to 3"):
        net.logits(batch_of(net, TEXTS), intervene=Permute("encoder.1", head=head))
    with pytest.raises(UsageError, match="it has only head 0"):
        net.logits(batch_of(net, TEXTS), intervene=Uniform("attention", head=1))


def test_heads_of_several_layers_together() -> None:
    """As one after the other, each through a function by hand."""
    net = model()
    batch, at = (
        batch_of(net, TEXTS),
        AtHeads((Head("encoder.0", 1), Head("encoder.0", 3), Head("encoder.2", 0)), Uniform()),
    )

    def by_hand(site: Site) -> Tensor:
        weights = site.weights.clone()
        for head in {"encoder.0": (1, 3), "encoder.2": (0,)}.get(site.name, ()):
            real = site.mask[:, 0].double()
            weights[:, head] = (real / real.sum(-1, keepdim=True).clamp(min=1)).to(weights.dtype)
        return weights

    with torch.no_grad():
        torch.testing.assert_close(net.logits(batch, intervene=at), net.logits(batch, intervene=by_hand))
    with pytest.raises(UsageError, match=r"unknown site 'encoder\.9'"):
        bound(AtHeads((Head("encoder.9", 0),), Uniform()), net)
    some = AtHeads((Head("encoder.0", 1),), Permute(seed=1))
    assert renewed(bound(some, net), 2) == AtHeads(some.places, Permute(seed=1).renewed(2))


@pytest.mark.slow
def test_a_place_within_a_model_of_transformers() -> None:
    net = in_memory(*bert())
    batch = net.collate([Example(0, (("a", "charming", "movie"),), 0), Example(1, (("dull",),), 1)])
    with torch.no_grad():
        own, found = net.trace(batch), net.trace(batch, intervene=Uniform("encoder.1-", head=0))
    torch.testing.assert_close(found.attention["encoder.0"], own.attention["encoder.0"], atol=0, rtol=0)
    torch.testing.assert_close(found.attention["encoder.1"][:, 1], own.attention["encoder.1"][:, 1])
    assert not torch.allclose(found.attention["encoder.1"][:, 0], own.attention["encoder.1"][:, 0])


SINKS = torch.tensor([0.5, 2.0])


@pytest.mark.parametrize("text", ["uniform", "random", "permute", "remove", "keep", "keep:count=2", "detach"])
def test_rows_beside_a_sink_keep_their_sum(text: str) -> None:
    """What a sink takes is a gate of the model's own, also under other weights; renormalising would open it."""
    scores = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    words = torch.tensor([[True] * 4, [True, True, True, False]])
    site = site_of(scores, words, [1, 2], PieceSoftmax(SINKS))
    total = site.weights.sum(-1)
    assert float(total.max()) < 0.95
    found = INTERVENTIONS.make(text)(site)
    torch.testing.assert_close(found.sum(-1), total)
    assert float(found.masked_fill(words[:, None, None], 0).abs().sum()) == 0


def test_removing_by_projection_gives_the_sink_its_share() -> None:
    """Masked and projected again: what is gone goes to the other words and to the sink, by their scores."""
    scores = torch.tensor([[[[1.0, 0.0, -1.0]]]])
    site = Site(
        "attention",
        scores,
        PieceSoftmax(torch.zeros(1))(scores, torch.ones(1, 1, 1, 3).bool()),
        torch.ones(1, 1, 1, 3).bool(),
        PieceSoftmax(torch.zeros(1)),
        batch_of_words(torch.ones(1, 3).bool(), [0]),
    )
    found = INTERVENTIONS.make("remove:how=project")(site)
    expected = torch.tensor([0.0, 0.0, -1.0, 0.0]).exp() * torch.tensor([0, 1, 1, 1])
    torch.testing.assert_close(found[0, 0, 0], (expected / expected.sum())[:3])


def test_groups_are_named_before_their_number() -> None:
    assert group_sites(["h.0", "h.10", "cross.0", "word"]) == {
        "h": ("h.0", "h.10"),
        "cross": ("cross.0",),
        "word": ("word",),
    }


def test_a_model_with_sinks_keeps_what_its_rows_sum_to() -> None:
    """GPT-OSS: uniform weights in the first layer sum to what the model's own rows do, layer and query by query."""
    import transformers

    tokenizer = byte_pieces()
    config = transformers.GptOssConfig(
        vocab_size=len(tokenizer), pad_token_id=1, id2label={0: "no", 1: "yes"}, num_key_value_heads=1, head_dim=8,
        num_local_experts=2, num_experts_per_tok=1, **SMALL,
    )  # fmt: skip
    net = in_memory(drawn(transformers.GptOssForSequenceClassification(config)), tokenizer)
    batch = net.collate([Example(0, (("a", "charming", "movie"),), 0), Example(1, (("dull",),), 1)])
    with torch.no_grad():
        own, found = (net.trace(batch, intervene=at).attention["decoder.0"] for at in (None, Uniform("decoder.0")))
    total = own.sum(-1)
    assert float(total.max()) < 0.999
    torch.testing.assert_close(found.sum(-1), total)
    last = total[1, :, 2, None].expand(2, 3) / 3  # the end symbol looks at the start, at the only word, and at itself
    torch.testing.assert_close(found[1, :, 2, :3], last)
