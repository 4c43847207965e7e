"""Several heads: a model of the user's with two of them, known by hand, and another recomputed text by text."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.removal import gradient, other_key
from exegete.experiments.common.side_by_side import distance, see_texts
from exegete.experiments.decision_flips.experiment import DecisionFlips
from exegete.experiments.importance_sets.experiment import ImportanceSets
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.interventions.permute import permuted
from exegete.models.contract import Site
from exegete.models.own.classifier import Own
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from tests.experiments.beside_models import slow_jsd, slow_tvd
from tests.models.own_models import GENERAL, LABELS, own, written
from tests.small import batch_of, texts, without_repeats

# Two heads read every word's number: the first sees a (20 above all others), the second sees b. logits are ±z with
# z = 2 v(first head's mean) - v(second head's mean), v(a) = v(b) = 1 and 0 for other words.
HAND = """
import exegete, torch

class Adapter(exegete.OwnModel):
    def __init__(self, words):
        super().__init__()
        rows = [[20.0 * (w == "a"), 20.0 * (w == "b"), float(w in "ab")] for w in words]
        self.table = torch.nn.Parameter(torch.tensor(rows))
    def embed(self, tokens):
        return self.table[tokens]
    def forward(self, embedded, mask, attend):
        weights = attend("two", embedded[..., :2].mT, embedded)
        seen = (weights * embedded[:, None, :, 2]).sum(-1)
        z = 2 * seen[:, :1] - seen[:, 1:] - 0.5
        return torch.cat([-z, z], -1)

def make(words, labels):
    return Adapter(words)
"""


def subject_of(model: Own, examples: tuple[Example, ...]) -> Subject:
    task = Task("small", LABELS, {"train": examples, "test": examples}, "by hand")
    return Subject(model, task, examples, predict(model, examples).argmax(-1), {}, 5.0)


def by_hand(tmp_path: Path) -> Subject:
    return subject_of(own(written(tmp_path, HAND)), (Example(0, (("c", "a", "b", "d"),), 1),))


def test_known_by_hand(tmp_path: Path) -> None:
    """z = 2 - 1 - ½ = ½. Without a the first head is a third on each of c, b and d: z = ⅔ - 1 - ½. Without b the
    second is a third on each of c, a and d: z = 2 - ⅓ - ½.
    """
    asked = by_hand(tmp_path)
    p = 1 / (1 + math.exp(-1.0))  # of "yes": logits ±½
    (sets,) = ImportanceSets(schemes=("gradient_x_attention",)).rows(asked).to_dicts()
    # ∂p/∂α·α is largest at a, whose removal flips the decision at once: the mean weights of a and b are tied.
    assert (sets["value"], sets["flips"]) == (0.25, True)
    assert sets["mass"] == pytest.approx(0.5, abs=1e-6)
    for seed in range(3):
        (one,) = SingleWeight(seed=seed).rows(asked).to_dicts()
        (flip,) = DecisionFlips(seed=seed).rows(asked).to_dicts()
        (pool,) = open_pooled(asked.model, asked.examples)
        gone = {1: _p(-5 / 6), 2: _p(7 / 6), 0: p, 3: p}  # by the word that goes
        places = [i for i in (1, 2) if abs(one["js_top"] - slow_jsd([1 - p, p], [1 - gone[i], gone[i]])) < 1e-6]
        assert len(places) == 1  # a or b: which of the two is keyed noise
        r = int(other_key(pool, torch.tensor(places), "other", seed)[0])
        assert one["js_random"] == pytest.approx(slow_jsd([1 - p, p], [1 - gone[r], gone[r]]), abs=1e-6)
        assert (flip["top_flips"], flip["random_flips"]) == (places == [1], r == 1)
    (shuffled,) = Permutation(draws=200).rows(asked).to_dicts()
    # One order for both heads: the first head's weight on each word with ¼. It lands on a or b and the second on the
    # other, on another word, ...: 12 pairs of places, equally likely.
    zs = [2 * (i in (1, 2)) - (j in (1, 2)) - 0.5 for i in range(4) for j in range(4) if i != j]
    assert shuffled["flips"] == pytest.approx(sum(z < 0 for z in zs) / 12, abs=0.1)
    assert shuffled["max_attention"] == pytest.approx(0.5, abs=1e-6)
    (found,) = AdversarySearch(steps=200, lr=0.05, epsilons=(0.05,)).rows(asked).to_dicts()
    assert found["met"]
    # z stays ½ with the first head on b and the second on a: ln 2 in both heads; a search gets near.
    assert 0.5 * math.log(2) < found["jsd"] <= math.log(2)
    assert found["tvd"] <= 0.05


def _p(z: float) -> float:
    return 1 / (1 + math.exp(-2 * z))


def logits_under(model: Own, example: Example, weights: Tensor) -> list[float]:
    """Of one text alone, under weights [head, key] at its last site."""

    def rewrite(site: Site) -> Tensor:
        return weights[None, :, None].float() if site.name == model.sites[-1] else site.weights

    return model.trace(batch_of(model, [example]), intervene=rewrite).logits[0].double().tolist()


def probabilities(logits: list[float]) -> list[float]:
    powers = [math.exp(z) for z in logits]
    return [power / sum(powers) for power in powers]


def test_recomputed_text_by_text(tmp_path: Path) -> None:
    examples = tuple(e for e in without_repeats(texts(16, seed=4)) if len(e) > 1)
    model = own(written(tmp_path, GENERAL))
    asked = subject_of(model, examples)
    tables = {e.id: e for e in examples}
    rows = {row["example"]: row for row in Permutation(draws=5, seed=3).rows(asked).to_dicts()}
    single = {row["example"]: row for row in SingleWeight(seed=2).rows(asked).to_dicts()}
    sets = {row["example"]: row for row in ImportanceSets(schemes=("attention",)).rows(asked).to_dicts()}
    for e in tables.values():
        heads = model.trace(batch_of(model, [e])).attention["pool"][0, :, 0].double()  # [head, key]
        own_p = probabilities(logits_under(model, e, heads))
        n, mean = len(e), heads.mean(0)
        ids, mask = torch.tensor([e.id]), torch.ones(1, n, dtype=torch.bool)
        places = permuted(torch.arange(n)[None], mask, ids, 3, 5)[0]
        tvds = sorted(slow_tvd(own_p, probabilities(logits_under(model, e, heads[:, order]))) for order in places)
        assert rows[e.id]["median_tvd"] == pytest.approx(tvds[2], abs=1e-5)
        assert rows[e.id]["max_attention"] == pytest.approx(float(mean.max()), abs=1e-6)

        def without(gone: list[int], heads: Tensor = heads, e: Example = e) -> list[float]:
            kept = heads.clone()
            kept[:, gone] = 0
            total = kept.sum(-1, keepdim=True)
            return logits_under(model, e, kept / total.where(total > 0, 1.0))

        top = int(mean.argmax())
        assert single[e.id]["js_top"] == pytest.approx(slow_jsd(own_p, probabilities(without([top]))), abs=1e-5)
        order = mean.argsort(descending=True).tolist()
        answers = [max(range(2), key=without(order[:j]).__getitem__) for j in range(n + 1)]
        margins = [abs(z[1] - z[0]) for z in (without(order[:j]) for j in range(n + 1))]
        first = next((j for j in range(1, n + 1) if answers[j] != answers[0]), n)
        if min(margins) > 1e-4:
            assert sets[e.id]["value"] == pytest.approx(first / n)


def test_the_gradient_by_a_key_is_of_every_head(tmp_path: Path) -> None:
    model = own(written(tmp_path, GENERAL)).double()
    (e,) = texts(1, seed=9)
    (pool,) = open_pooled(model, (e,))
    label = int(pool.logits.argmax())
    slope, step = gradient(pool, pool.logits), 1e-5
    for head in range(2):
        for key in range(len(e)):
            moved = torch.zeros_like(pool.weights)
            moved[0, head, key] = step
            up, down = (pool.decode((pool.weights + s * moved)[:, None])[0, 0].softmax(-1)[label] for s in (1, -1))
            assert float(slope[0, head, key]) == pytest.approx(float(up - down) / (2 * step), abs=1e-6)


def test_weights_of_two_models_are_compared_head_by_head(tmp_path: Path) -> None:
    examples = texts(9, seed=2)
    one, other = own(written(tmp_path, GENERAL)), own(written(tmp_path, GENERAL))
    for parameter in other.parameters():
        parameter.mul_(2)
    found = distance(see_texts(one, examples), see_texts(other, examples)).tolist()
    for e, far in zip(examples, found, strict=True):
        ours, theirs = (m.trace(batch_of(m, [e])).attention["pool"][0, :, 0].tolist() for m in (one, other))
        slow = sum(slow_jsd(p, q) for p, q in zip(ours, theirs, strict=True)) / 2
        assert math.isnan(far) if len(e) == 1 else far == pytest.approx(slow, abs=1e-6)


def test_the_battery_is_for_any_own_model(tmp_path: Path) -> None:
    asked = by_hand(tmp_path)
    for experiment in (Permutation(), ImportanceSets(), SingleWeight(), DecisionFlips(), AdversarySearch()):
        assert unsuited(experiment, asked.task, asked.model) is None
