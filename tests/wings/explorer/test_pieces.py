"""Words of several pieces: every site of a model of transformers is taken hold of, by every kind of move."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.search import Search
from exegete.models.contract import Site
from exegete.wings.explorer.attack import Attack, attack, sites_in_pass
from exegete.wings.explorer.lab import Lab, open_lab
from tests.models.contracted import KINDS
from tests.models.tiny import bert_folder

pytest.importorskip("transformers", reason="transformers is not installed")
TEXT = "an unbelievably charming movie of terrific plot"
PIECES = 1 + 2 + 3 + 2 + 1 + 1 + 2 + 1 + 1  # with the symbols around: `an` is two letters, `terrific` terr and ##ific
SITES = ("encoder.0", "encoder.1")
MOVES = ("uniform", "reverse", "permute", "remove", "sinks", "without", "zero")


@pytest.fixture(scope="module")
def tiny() -> Lab:
    return open_lab(f"hf:{bert_folder()}")


def by_hand(of: Attack, weights: Tensor, hold: bool) -> Tensor:
    """One plain pass with these rows at the site; all other sites are left alone, or hold what they had."""
    own = {site.name: site.weights for site in sites_in_pass(of.model, of.batch)}

    def impose(site: Site) -> Tensor:
        if site.name != of.site:
            return own[site.name] if hold else site.weights
        whole = torch.zeros_like(site.weights)
        rows = weights.to(whole.dtype).unflatten(0, (site.weights.shape[1], -1))  # [head, query, real key]
        if rows.shape[1] != whole.shape[2]:  # the first query is read, and the others stay
            whole = site.weights.clone()
        whole[0, :, : rows.shape[1], of.opened.mask[0]] = rows
        return whole

    with torch.no_grad():
        return of.model.logits(of.batch, intervene=impose)[0].double().softmax(-1)


def test_rows_are_pieces_and_keys_are_words(tiny: Lab) -> None:
    found = tiny.attack(TEXT, "encoder.0")
    assert found.keys == ["<s>", *TEXT.split(), "</s>"]
    assert found.queries == len(found.looks) == PIECES
    assert found.looks[3:8] == [
        "unbelievably 1/3",
        "unbelievably 2/3",
        "unbelievably 3/3",
        "charming 1/2",
        "charming 2/2",
    ]
    assert found.looks[8] == "movie"  # which is one piece
    assert tiny.attack(TEXT).looks == [""]  # one query is read


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("how", MOVES)
def test_every_move_at_every_site_is_a_pass_under_these_weights(tiny: Lab, site: str, how: str) -> None:
    found = tiny.attack(TEXT, site)
    weights = found.rewritten(found.own, how, count=1, key=3, draw=2)
    effect = found.weighed(weights)
    assert effect.probabilities.tolist() == pytest.approx(by_hand(found, weights, hold=False).tolist(), abs=1e-6)
    if site == SITES[-1]:
        assert effect.frozen is None
    else:
        assert effect.frozen is not None
        assert effect.frozen.tolist() == pytest.approx(by_hand(found, weights, hold=True).tolist(), abs=1e-6)


@pytest.mark.parametrize("site", SITES)
def test_a_dragged_row_moves_the_prediction_and_own_weights_do_not(tiny: Lab, site: str) -> None:
    found = tiny.attack(TEXT, site)
    row = [0.0] * len(found.keys)
    row[4] = 1.0
    assert found.weigh({0: row}).tvd > 1e-4
    own = found.weigh({0: found.own[0].tolist()})
    assert own.tvd == pytest.approx(0, abs=1e-6)
    if own.frozen is not None:
        assert own.frozen.tolist() == pytest.approx(found.probabilities.tolist(), abs=1e-6)


@pytest.mark.parametrize("site", SITES)
def test_permutations_and_adversaries_at_every_site(tiny: Lab, site: str) -> None:
    found = tiny.attack(TEXT, site)
    moved, apart, flipped = found.outcomes(first=3, count=5)
    assert len(moved) == len(apart) == len(flipped) == 5
    one = found.weighed(found.rewritten(found.own, "permute", count=1, key=0, draw=3))
    assert moved[0] == pytest.approx(one.tvd, abs=1e-6)
    assert apart[0] == pytest.approx(one.jsd, abs=1e-6)
    *_, last = found.searched(Search(count=2, steps=10), epsilon=0.5)
    assert torch.tensor(last["rows"]).shape == found.own.shape


def test_draws_far_away_take_no_more_memory(tiny: Lab) -> None:
    found = tiny.attack(TEXT, "encoder.0")
    apart = found.outcomes(first=0, count=100)
    assert found.outcomes(first=97, count=3)[0] == pytest.approx(apart[0][97:], abs=1e-6)
    assert found._permuted(found.own, torch.tensor([found.movable]), first=900, count=2).shape == (2, *found.own.shape)


@pytest.mark.parametrize("name", [name for name in KINDS if "translator" not in name and "next word" not in name])
def test_every_row_has_a_name_and_own_weights_change_nothing_in_any_model(name: str) -> None:
    model, examples = KINDS[name]()
    longest = max(examples, key=lambda example: len(example.all_words))
    for site in model.sites:
        found = attack(model, longest, site)
        assert len(found.looks) == found.queries
        effect = found.weighed(found.own)
        assert effect.tvd < 1e-6
        assert effect.frozen is None or effect.frozen.tolist() == pytest.approx(found.probabilities.tolist(), abs=1e-6)


def test_what_is_too_much_has_a_sentence_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = open_lab(f"hf:{bert_folder()}")
    monkeypatch.setattr("exegete.wings.explorer.lab.ROWS", 2 * PIECES - 1)
    with pytest.raises(UsageError, match=rf"{2 * PIECES} rows at 'encoder.0', and .* can be taken in hand"):
        tiny.attack(TEXT, "encoder.0")
    monkeypatch.setattr("exegete.wings.explorer.lab.MATRIX", 6)
    assert len(tiny.attack(TEXT).own) == 2  # a long text has no matrix, and its readout all the same
    with pytest.raises(UsageError, match="a matrix of weights is shown for texts of up to 6 words"):
        tiny.attack(TEXT, "encoder.0")
    monkeypatch.setattr("exegete.wings.explorer.lab.PIECES", PIECES - 1)
    with pytest.raises(UsageError, match=f"this text has {PIECES} pieces, and the explorer reads up to {PIECES - 1}"):
        tiny.attack(TEXT)
    monkeypatch.setattr("exegete.wings.explorer.lab.WORDS", 6)
    with pytest.raises(UsageError, match="reads texts of up to 6 words"):
        tiny.explain(TEXT)
