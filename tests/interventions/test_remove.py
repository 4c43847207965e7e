"""Remove and keep: against plain loops, with ties, with everything gone."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.keep import Keep
from exegete.interventions.remove import Remove, Which, without
from exegete.models.contract import Site
from exegete.models.projections import Softmax, Sparsemax
from exegete.training.evaluation import predict
from tests.interventions.sites import PROJECTIONS, random_site, site_of
from tests.small import small_model, texts


def slow_removal(row: list[float], real: list[bool], gone: set[int]) -> list[float]:
    """Zero a set, divide by what is left."""
    kept = [w if real[i] and i not in gone else 0.0 for i, w in enumerate(row)]
    total = sum(kept)
    return [w / total if total else 0.0 for w in kept]


def slow_choice(row: list[float], real: list[bool], which: Which, size: int) -> set[int]:
    """The highest or lowest real keys, the first of equals first."""
    places = [i for i, is_real in enumerate(real) if is_real]
    sign = -1 if which == "top" else 1
    return set(sorted(places, key=lambda i: (sign * row[i], i))[:size])


def rows_of(site: Site, weights: Tensor) -> list[tuple[list[float], list[bool], list[float]]]:
    real = site.mask.expand_as(site.weights)
    keys = weights.shape[-1]
    return list(
        zip(*(t.reshape(-1, keys).tolist() for t in (site.weights.double(), real, weights.double())), strict=True)
    )


@given(
    seed=st.integers(0, 10_000), which=st.sampled_from(["top", "bottom"]), count=st.integers(1, 4), sparse=st.booleans()
)
@settings(max_examples=20, deadline=None)
def test_against_plain_loops(seed: int, which: Which, count: int, sparse: bool) -> None:
    site = random_site(seed, PROJECTIONS[sparse])
    for row, real, found in rows_of(site, Remove(which=which, count=count)(site)):
        assert found == pytest.approx(slow_removal(row, real, slow_choice(row, real, which, count)), abs=1e-6)
    for row, real, found in rows_of(site, Keep(count=count)(site)):
        others = set(range(len(row))) - slow_choice(row, real, "top", count)
        assert found == pytest.approx(slow_removal(row, real, others), abs=1e-6)


@pytest.mark.parametrize("share", [0.07, 0.1, 0.3, 0.5, 1.0])  # 0.07 · 100 is 7.000000000000001 in floats
def test_a_share_is_rounded_up(share: float) -> None:
    site = random_site(3, Softmax(), keys=100)
    gone = site.weights.masked_fill(~site.mask, 0) - Remove(share=share)(site)  # what goes loses, what stays gains
    for row, real, lost in rows_of(site, gone):
        n = sum(real)
        expected = math.ceil(round(share * n, 6))
        assert sum(1 for w, less in zip(row, lost, strict=True) if w > 0 and less > 0) == expected


def test_masking_the_scores_is_the_same_for_softmax_and_not_for_sparsemax() -> None:
    site = random_site(5, Softmax())
    torch.testing.assert_close(Remove(count=2, how="project")(site), Remove(count=2)(site))
    scores = torch.tensor([2.0, 0.0, -0.5]).view(1, 1, 1, 3)
    sparse = site_of(scores, torch.ones(1, 3).bool(), [0], Sparsemax())
    assert sparse.weights.flatten().tolist() == [1, 0, 0]  # one word has all weight
    assert Remove()(sparse).flatten().tolist() == [0, 0, 0]  # nothing is left to renormalise: the bias decides
    assert Remove(how="project")(sparse).flatten().tolist() == pytest.approx([0, 0.75, 0.25])  # by hand
    assert Remove(which="bottom")(sparse).flatten().tolist() == [1, 0, 0]


def test_everything_removed_leaves_the_bias() -> None:
    examples = texts(5)
    model = small_model("bilstm:size=4,hidden=4,outputs=classes", examples)
    for intervention in (Remove(share=1), Remove(count=99), Remove(count=99, how="project")):
        found = predict(model, examples, intervention)
        torch.testing.assert_close(found, model.decoder.bias.detach().expand_as(found))


def test_random_removal_takes_every_key_equally_often_and_stays() -> None:
    n = 3000
    site = site_of(torch.randn(1, 1, 1, 4).expand(n, 1, 1, 4), torch.ones(n, 4).bool(), range(n))
    gone = Remove(which="random")(site) == 0
    assert gone.double().mean((0, 1, 2)).tolist() == pytest.approx([0.25] * 4, abs=0.03)
    assert torch.equal(Remove(which="random")(site) == 0, gone)
    assert not torch.equal(Remove(which="random", seed=1)(site) == 0, gone)


def test_ties_are_broken_by_place() -> None:
    site = site_of(torch.zeros(1, 1, 1, 4), torch.tensor([[False, True, True, True]]), [0])
    assert Keep(count=1)(site).flatten().tolist() == [0, 1, 0, 0]
    assert Remove(count=2)(site).flatten().tolist() == [0, 0, 0, 1]
    assert Remove(which="bottom", count=2)(site).flatten().tolist() == [0, 0, 0, 1]


def test_a_set_of_ones_own() -> None:
    weights, mask = torch.tensor([[0.5, 0.3, 0.2, 0.0]]), torch.tensor([[True, True, True, False]])
    gone = torch.tensor([[True, False, False, False]])
    torch.testing.assert_close(without(weights, mask, gone), torch.tensor([[0, 0.6, 0.4, 0]]))
    assert not without(weights, mask, mask).any()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"count": 0}, "count is a number of words, at least 1"),
        ({"share": 0.0}, "share is a part of the words"),
        ({"share": 1.5}, "share is a part of the words"),
        ({"share": math.nan}, "share is a part of the words"),
        ({"which": "tpo"}, "did you mean 'top'"),
        ({"how": "projekt"}, "did you mean 'project'"),
    ],
)
def test_wrong_settings(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Remove(**settings)  # type: ignore[arg-type]


def test_keep_refuses_too() -> None:
    with pytest.raises(UsageError, match="intervention 'keep'"):
        Keep(count=0)
