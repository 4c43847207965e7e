"""Resumed passes: the same logits as whole passes, of every architecture, and only the layers above a site computed."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.models.capabilities import Resuming
from exegete.models.contract import Site
from exegete.models.huggingface.build import build_from_spec
from exegete.models.huggingface.parameters import layers_of
from exegete.models.huggingface.proof import proven
from exegete.models.huggingface.resumption import Below, recording, resuming
from exegete.models.huggingface.sites import Access, probe_sites, reading
from exegete.models.openings import opened, passing
from exegete.tasks.example import Example
from tests.models.architectures import MADE, inputs, tiny
from tests.models.test_architectures import on_last, only_at, real
from tests.models.tiny import bert, bert_folder, in_memory, roberta

EQUAL = 1e-6
ROWS = torch.tensor([1, 0, 1, 1, 0])
TEXTS = ("an unbelievably charming movie of plot", "bad plot !", "a dull movie")


@pytest.fixture(params=sorted(MADE))
def base(request: pytest.FixtureRequest) -> Any:
    return tiny(request.param)


def recorded(base: Any, access: Access, site: str) -> Below:
    with (
        torch.no_grad(),
        reading(base, access) as run,
        recording(base, layers_of(access), run, access, site) as below,
    ):
        base(**inputs(base))
    return below


def repeated(base: Any) -> dict[str, Any]:
    return {name: given[ROWS] if isinstance(given, Tensor) else given for name, given in inputs(base).items()}


def test_at_every_site_a_resumed_pass_is_a_whole_one(base: Any) -> None:
    access = probe_sites(base, inputs(base, 0))
    for site in access.sites:
        below = recorded(base, access, site)
        with torch.no_grad(), reading(base, access, only_at(site)):
            whole = base(**repeated(base)).logits
        with torch.no_grad(), reading(base, access, only_at(site)) as run, resuming(base, run, below, ROWS, 2):
            resumed = base(**repeated(base)).logits
        mask = inputs(base)["attention_mask"][ROWS].bool()
        inside = ... if whole.dim() == 2 or base.config.is_encoder_decoder else mask
        assert (whole[inside] - resumed[inside]).abs().max() <= EQUAL * max(1.0, float(whole.abs().max())), site
        with torch.no_grad(), reading(base, access):
            assert (base(**repeated(base)).logits[inside] - resumed[inside]).abs().max() > 1e-4, site


def test_below_the_last_site_nothing_attends_again(base: Any) -> None:
    access = probe_sites(base, inputs(base, 0))
    last, met = access.sites[-1], Counter[str]()
    owner = next(path for path, names in access.names.items() if last in names)
    in_layer = {site for path, names in access.names.items() for site in names if _layer_of(path) == _layer_of(owner)}
    again = {last} if len(access.names[owner]) > 1 else in_layer  # ALBERT's layers are one module

    def at(name: str) -> Any:
        met[name] += 1

    below = recorded(base, access, last)
    with torch.no_grad(), reading(base, access, at) as run, resuming(base, run, below, ROWS, 2):
        base(**repeated(base))
    assert met == Counter(again)


def _layer_of(path: str) -> str:
    parts = path.split(".")
    return ".".join(parts[: next(place for place, part in enumerate(parts) if part.isdigit()) + 1])


def test_layers_are_themselves_again_also_after_an_exception(base: Any) -> None:
    access = probe_sites(base, inputs(base, 0))
    below = recorded(base, access, access.sites[-1])
    with pytest.raises(ArithmeticError), reading(base, access) as run, resuming(base, run, below, ROWS, 2):
        raise ArithmeticError
    assert not any("forward" in part.__dict__ for part in base.modules())
    assert not any(part._forward_hooks for part in base.modules())
    with torch.no_grad(), reading(base, access):
        whole = base(**inputs(base)).logits
    with torch.no_grad(), reading(base, access, on_last):
        assert (real(base, base(**inputs(base)).logits) - real(base, whole)).abs().max() > 1e-4


def batch_of(model: Any) -> Any:
    return model.collate([Example(i, (tuple(text.split()),), 0) for i, text in enumerate(TEXTS)])


@pytest.mark.parametrize("make", [bert, roberta], ids=("bert", "roberta"))
def test_opened_models_give_the_logits_of_whole_passes(make: Any) -> None:
    model = in_memory(*make())
    batch = batch_of(model)
    assert isinstance(model, Resuming)
    texts = opened(model, batch)
    noise = torch.rand(len(TEXTS), 4, *texts.weights.shape[1:], generator=torch.Generator().manual_seed(0)).double()
    weights = noise * texts.mask[:, None, None]
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    found = texts.logits(weights)
    for draw in range(4):

        def impose(site: Site, draw: int = draw) -> Tensor:
            if site.name != model.sites[-1]:
                return site.weights
            rows = site.weights.clone()
            rows[:, :, 0] = weights[:, draw].detach().to(rows.dtype)
            return rows

        with torch.no_grad():
            whole = model.logits(batch, intervene=impose)
        assert (found[:, draw] - whole).abs().max() <= EQUAL
    (slope,) = torch.autograd.grad(found.square().sum(), weights)
    assert bool(slope.abs().sum((1, 2, 3)).gt(0).all())


@pytest.mark.parametrize("site", ["encoder.0", "encoder.1", "attention"])
def test_an_intervention_below_is_kept_and_one_above_acts(site: str) -> None:
    model = build_from_spec(f"hf:{bert_folder()}:head=attention", ("no", "yes"))
    batch = batch_of(model)

    def sharpened(at: Site) -> Tensor:
        squared = at.weights.square()
        return squared / squared.sum(-1, keepdim=True).clamp(min=1e-9)

    texts = passing(model, batch, site, sharpened)
    with torch.no_grad():
        assert (texts.own - model.logits(batch, intervene=sharpened)).abs().max() <= EQUAL
        assert (texts.own - model.logits(batch)).abs().max() > 1e-4


def test_a_model_whose_layers_cannot_be_resumed_is_run_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_memory(*bert())
    batch = batch_of(model)
    own = opened(model, batch)
    assert model.proof.resumes
    assert model.begun(batch, model.sites[-1], lambda site: site.weights).below.outputs
    monkeypatch.setattr(
        "exegete.models.huggingface.resumption.each", lambda found, change: found
    )  # rows are not chosen
    model.proof = proven(model)
    assert not model.proof.resumes
    again = opened(model, batch)
    assert not model.begun(batch, model.sites[-1], lambda site: site.weights).below.outputs
    draws = own.weights[:, None].expand(-1, 3, -1, -1)
    assert (again.logits(draws) - own.own[:, None]).abs().max() <= EQUAL
