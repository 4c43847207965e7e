"""Sanity: perturbations are undone, shifts change no function, and the test finds what it must find."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache

import polars as pl
import pytest
import torch
from scipy.stats import kendalltau
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject
from exegete.experiments.sanity.axioms import AXIOMS, axioms, equal_functions
from exegete.experiments.sanity.experiment import (
    METHODS,
    Sanity,
    axioms_table,
    check_shift,
    compare_scores,
    score_words,
)
from exegete.experiments.sanity.figure import cascade
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, Scores, Target, on_words
from exegete.models.build import make_classifier
from exegete.models.contract import Predictor
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.module import Model
from exegete.models.ours.perturbations import parts, randomise, restore_after, shift_weights, unshiftable
from exegete.report.theme import numbers
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import PAD
from tests import subjects
from tests.small import batch_of, small_model, small_task, texts, vocabulary

EXAMPLES = texts(8, longest=6)
SHIFTABLE = ("bilstm:size=7,hidden=6,scale=1", "bigru:size=7,hidden=6,scale=1", "average:size=7,hidden=6,scale=1")
FEW = ("attention", "gradient:norm=l2", "gradient", "leave_one_out:of=logit", "random")


def weights(model: Model) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def subject_of(model: PoolingClassifier, examples: Sequence[Example] = EXAMPLES) -> Subject:
    task = Task("small", ("no", "yes"), {"test": tuple(examples)}, "made up")
    return subjects.subject_of(model, task)


# Perturbations


def test_weights_come_back_also_after_an_exception() -> None:
    model = small_model(SHIFTABLE[0], EXAMPLES)
    before = weights(model)
    for state in (randomise(model, parts(model), 0), shift_weights(model, 0), restore_after(model)):
        with pytest.raises(ZeroDivisionError):
            _fail_inside(state, model, before)
        assert same(before, weights(model))


def _fail_inside(state: AbstractContextManager[None], model: PoolingClassifier, before: dict[str, Tensor]) -> None:
    with state:
        with torch.no_grad():
            model.decoder.weight.add_(1)
        assert not same(before, weights(model))
        raise ZeroDivisionError


def test_randomised_parts_change_and_the_others_do_not() -> None:
    model = make_classifier("rationale:size=7,hidden=6,scale=1", vocabulary(EXAMPLES), ("no", "yes"))
    assert parts(model) == ("decoder", "scorer", "encoder", "selector", "embedding")
    before = weights(model)
    for part in parts(model):
        with randomise(model, (part,), 0):
            for name, tensor in model.state_dict().items():
                assert torch.equal(tensor, before[name]) != name.startswith(f"{part}."), (part, name)
    with randomise(model, ("embedding",), 0):
        assert model.embedding.weight[PAD].abs().sum() == 0
        assert model.embedding.weight.square().mean().sqrt().item() == pytest.approx(1, abs=0.2)


def test_random_weights_depend_on_the_seed_and_the_layer_only() -> None:
    model = small_model(SHIFTABLE[0], EXAMPLES)
    found = []
    for of, seed in ((("encoder",), 0), (parts(model), 0), (("encoder",), 1)):
        with randomise(model, of, seed):
            found.append(weights(model)["encoder.lstm.weight_hh_l0"])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    size = weights(model)["encoder.lstm.weight_hh_l0"].square().mean().sqrt()
    assert found[0].square().mean().sqrt().item() == pytest.approx(size.item(), rel=0.2)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", SHIFTABLE)
def test_a_shift_changes_the_embeddings_and_not_the_function(spec: str, wrap: bool) -> None:
    model = small_model(spec, EXAMPLES, wrap)
    batch = batch_of(model, EXAMPLES)
    before, embedded = model.trace(batch), model.embed(batch)
    with shift_weights(model, 0):
        after, moved = model.trace(batch), model.embed(batch)
    difference = (moved - embedded)[batch.present]
    assert (difference - difference[0]).abs().max() < 1e-6  # the same for all words and symbols
    assert difference[0].norm() > 1
    assert (before.logits - after.logits).abs().max() < 1e-5
    assert (before.attention["attention"] - after.attention["attention"]).abs().max() < 1e-5


def test_what_cannot_be_shifted_says_why() -> None:
    convolution = small_model("cnn:size=7,hidden=8", EXAMPLES)
    rationale = make_classifier("rationale:size=7,hidden=6", vocabulary(EXAMPLES), ("no", "yes"))
    for model, why in ((convolution, "zeros"), (rationale, "elsewhere")):
        assert why in str(unshiftable(model))
        with pytest.raises(UsageError, match="can't be shifted"), shift_weights(model, 0):
            pass
    with pytest.raises(UsageError, match="no layers"):
        parts(object())


def test_a_shift_that_changes_the_function_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(SHIFTABLE[2], EXAMPLES)
    check_shift(subject_of(model), 0)
    monkeypatch.setattr(
        "exegete.experiments.sanity.experiment.shift_weights", lambda model, seed: randomise(model, ("decoder",), seed)
    )
    with pytest.raises(Exception, match="not the same function"):
        check_shift(subject_of(model), 0)


# What is left of the scores


def test_comparison_by_hand() -> None:
    nan = math.nan
    before = torch.tensor([[3.0, -2, 1, nan], [1, 2, nan, nan], [5, nan, nan, nan], [0, 0, nan, nan]]).double()
    after = torch.tensor([[3.0, 2, 1, nan], [1, 2.00001, nan, nan], [4, nan, nan, nan], [0, 0, nan, nan]]).double()
    found = compare_scores(before, after)
    assert found["tau"][0].item() == pytest.approx(kendalltau([3, -2, 1], [3, 2, 1]).statistic)
    assert found["tau_absolute"].tolist()[:2] == [1, 1]
    assert found["tau"][2:].isnan().all()
    assert found["unchanged"].tolist() == [False, True, True, True]
    assert found["value"].tolist() == pytest.approx([4 / 3, 1e-5 / 2, 1 / 5, 0], abs=1e-6)


def test_words_that_nearly_tie_may_change_places_and_lost_scores_are_a_change() -> None:
    before = torch.tensor([[1.0, 0.50001, 0.5], [1.0, 0.6, 0.5]]).double()
    after = torch.tensor([[1.0, 0.5, 0.50001], [0.0, 0.0, 0.0]]).double()
    assert compare_scores(before, after)["unchanged"].tolist() == [True, False]


def test_scores_are_those_of_single_texts_for_the_first_class() -> None:
    model = small_model(SHIFTABLE[0], EXAMPLES, wrap=True)
    subject = subject_of(model)
    method = IMPORTANCES.make("leave_one_out:of=logit")
    with randomise(model, parts(model), 0):
        found = score_words(subject, {"loo": method})["loo"]
        for i, e in enumerate(EXAMPLES):
            batch = collate([e], model.vocabulary)
            alone = method(model, batch, Target(subject.predicted[i : i + 1])).values[batch.words]
            assert torch.allclose(found.values[i, : len(e)], alone.double(), atol=1e-5)
            assert found.values[i, len(e) :].isnan().all()
    assert found.error is None


# The experiment


@cache
def rows() -> pl.DataFrame:
    found = Sanity(methods=FEW, draws=2).rows(subject_of(small_model(SHIFTABLE[0], EXAMPLES)))
    return found.select(*(pl.lit(x).alias(n) for n, x in (("task", "t"), ("model", "bilstm"), ("seed", 0))), pl.all())


@cache
def summary() -> pl.DataFrame:
    return Sanity(methods=FEW).summary(rows())


def of(method: str, test: str, part: str) -> dict[str, float]:
    return summary().filter(method=method, test=test, part=part).row(0, named=True)


def test_there_is_a_row_per_example_method_and_perturbation() -> None:
    states = {("cascade", p) for p in ("decoder", "scorer", "encoder", "embedding")}
    states |= {("independent", part) for _, part in states} | {("shift", "embedding")}
    counted = rows().filter(pl.col("unchanged").is_not_null()).group_by("method", "test", "part", "draw").len()
    assert set(counted.select("test", "part").iter_rows()) == states
    assert set(counted["len"]) == {len(EXAMPLES)}
    assert len(counted) == len(FEW) * (2 * (len(states) - 1) + 1)  # two draws of everything but the shift


def test_random_scores_survive_everything() -> None:
    """They don't know the model: the control that the test must find."""
    found = summary().filter(pl.col("method") == "random")
    assert found["mean"].to_list() == pytest.approx([1] * len(found))
    assert found["change"].sum() == 0
    assert found["unchanged"].to_list() == [1] * len(found)


def test_attention_knows_nothing_of_the_decoder() -> None:
    assert of("attention", "cascade", "decoder")["change"] == 0
    assert of("attention", "cascade", "scorer")["change"] > 0.05
    assert of("leave_one_out:of=logit", "cascade", "decoder")["change"] > 0.05
    assert abs(of("attention", "cascade", "embedding")["mean"]) < 0.5


def test_a_cascade_begins_where_the_decoder_alone_is() -> None:
    for method in FEW:
        assert of(method, "cascade", "decoder")["mean"] == of(method, "independent", "decoder")["mean"]
        if method != "random":
            assert of(method, "cascade", "embedding")["mean"] != of(method, "independent", "embedding")["mean"]


def test_a_shift_moves_only_methods_that_multiply_by_the_embedding() -> None:
    """Kindermans et al. 2017: the gradient is the same, gradient · input is not."""
    for method in ("attention", "gradient:norm=l2", "leave_one_out:of=logit"):
        assert of(method, "shift", "embedding")["unchanged"] == 1
        assert of(method, "shift", "embedding")["change"] < 1e-4
    assert of("gradient", "shift", "embedding")["unchanged"] < 0.5


def test_the_summary_counts_and_bounds() -> None:
    for row in summary().iter_rows(named=True):
        assert row["n"] + row["undefined"] == len(EXAMPLES)
        assert row["low"] <= row["mean"] <= row["high"]
    mine = rows().filter(method="gradient", test="cascade", part="encoder")
    first, second = (mine.filter(draw=draw)["tau"].to_list() for draw in (0, 1))
    assert first != second
    means = [(a + b) / 2 for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    assert of("gradient", "cascade", "encoder")["mean"] == pytest.approx(sum(means) / len(means))


def test_several_seeds_have_one_interval() -> None:
    two = pl.concat([rows(), rows().with_columns(pl.lit(1).alias("seed"))])
    found = Sanity(methods=FEW).summary(two).filter(method="gradient", test="cascade", part="encoder")
    assert found["seeds"].to_list() == [2]
    assert found["n"].to_list() == [2 * of("gradient", "cascade", "encoder")["n"]]


def test_a_convolution_has_no_shift_and_refused_methods_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def refuses(self, model: Predictor) -> str | None:
            return "not for this one"

        def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
            raise AssertionError

    monkeypatch.setattr(IMPORTANCES, "_own", dict(IMPORTANCES._own))  # the new name is forgotten after
    IMPORTANCES.add("refusing", dataclass(frozen=True)(Refusing), "refuses")
    model = small_model("cnn:size=7,hidden=8,scale=1", EXAMPLES[:4])
    found = Sanity(methods=("random", "refusing"), draws=1).rows(subject_of(model, EXAMPLES[:4]))
    assert set(found["method"]) == {"random"}
    assert "shift" not in found["test"]
    with pytest.raises(UsageError, match="no importance"):
        Sanity(methods=("refusing",)).rows(subject_of(model, EXAMPLES[:4]))


def test_settings_are_checked() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Sanity(methods=())
    with pytest.raises(UsageError, match="only once"):
        Sanity(methods=("random", "random"))
    with pytest.raises(UsageError, match="draws of 1"):
        Sanity(draws=0)
    with pytest.raises(UsageError, match="did you mean 'attention'"):
        Sanity(methods=("atention",))
    assert EXPERIMENTS.make("sanity:texts=5") == Sanity(texts=5)
    assert set(METHODS) == set(Sanity().methods)


def test_the_figure_draws_the_cascade_from_the_trained_model_down() -> None:
    table = cascade(summary())
    mine = table.filter(method="gradient (norm=l2)").sort("place")
    assert mine["step"].to_list() == ["trained", "decoder", "+ attention", "+ encoder", "+ embeddings"]
    assert mine["mean"][0] == 1
    assert mine["mean"][4] == of("gradient:norm=l2", "cascade", "embedding")["mean"]
    chart = Sanity(methods=FEW).figures(rows(), summary())["randomisation"]
    assert numbers(chart) is not None
    assert "nothing to show" in str(Sanity().figures(rows(), summary().clear())["randomisation"].to_dict())


# Axioms


@dataclass(frozen=True)
class Known:
    """Scores that a test sets for the words of a text, by the model's own weights or not at all."""

    kind: str

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        assert isinstance(model, PoolingClassifier)
        trace = model.trace(batch)
        values = {
            "states": trace.states["attention"].sum(-1),
            "nothing": torch.zeros(batch.tokens.shape),
            "ones": torch.ones(batch.tokens.shape),
        }[self.kind].detach()
        return Scores(on_words(values, batch), False, target or Target(batch.label))


def test_equal_functions_are_equal() -> None:
    narrow, wide = equal_functions()
    batch = collate([Example(i, (tuple(w),), 0) for i, w in enumerate(("abcd", "fg", "g"))], narrow.vocabulary)
    a, b = narrow.trace(batch), wide.trace(batch)
    assert torch.allclose(a.logits, b.logits, atol=1e-5)
    assert a.logits.std() > 0.1
    assert torch.allclose(a.attention["attention"], b.attention["attention"], atol=1e-5)
    assert a.states["attention"].shape[-1] == 6
    assert b.states["attention"].shape[-1] == 16


def _removals(words: tuple[str, ...], at: int) -> Iterator[tuple[str, ...]]:
    yield words[:at] + words[at + 1 :]
    yield (*words[:at], "never seen", *words[at + 1 :])


def asked(axiom: str) -> tuple[PoolingClassifier, tuple[str, ...]]:
    """The toy model of an axiom and its text, as a method meets them."""
    met: list[tuple[PoolingClassifier, tuple[str, ...]]] = []

    def spy(model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        assert isinstance(model, PoolingClassifier)
        names = {row: word for word, row in model.vocabulary.index.items()}
        met.append((model, tuple(names[row] for row in batch.tokens[0].tolist())))
        return Known("ones")(model, batch, target)

    AXIOMS[axiom](spy)
    return met[0]


def logit(model: PoolingClassifier, words: tuple[str, ...]) -> float:
    return model.trace(collate([Example(0, (words,), 1)], model.vocabulary)).logits[0, 1].item()


def test_the_toys_are_what_they_claim() -> None:
    model, words = asked("sensitivity")
    assert words == ("on", "off", "off")
    assert 2 * logit(model, words) == pytest.approx(1 - (0 + 0.5 + 0.5) / 3)
    assert all(logit(model, left) < logit(model, words) - 0.05 for left in _removals(words, 0))
    model, words = asked("dummy")
    assert words == ("filler", "good", "filler")
    for rest in (words, words[:2], ("filler",), ("filler", "never seen")):
        assert all(logit(model, left) == pytest.approx(logit(model, rest)) for left in _removals(rest, 0))
    assert logit(model, ("good",)) == logit(model, ("good", "good", "filler")) > logit(model, ("filler",))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("gradient:norm=l2", {"sensitivity": False, "dummy": True, "implementation": True}),
        ("leave_one_out:of=logit", {"sensitivity": True, "dummy": True, "implementation": True}),
        ("attention", {"sensitivity": True, "dummy": True, "implementation": True}),
        ("random", {"sensitivity": True, "dummy": False, "implementation": True}),
        ("integrated_gradients", {"sensitivity": True, "dummy": True, "implementation": True}),
    ],
)
def test_methods_keep_the_axioms_that_theory_says(method: str, expected: dict[str, bool]) -> None:
    found = axioms(IMPORTANCES.make(method))
    assert {name: (value > 0.01) == (name == "sensitivity") for name, value in found.items()} == expected


def test_numbers_of_axioms_by_hand() -> None:
    ones: Importance = Known("ones")
    assert axioms(ones) == {"sensitivity": pytest.approx(1 / 3), "dummy": 1.0, "implementation": 0.0}
    assert axioms(Known("nothing")) == {"sensitivity": 0.0, "dummy": 0.0, "implementation": 0.0}
    assert axioms(Known("states"))["implementation"] > 0.1


def test_the_table_of_axioms() -> None:
    table = axioms_table(rows())
    held = {(row["method"], row["axiom"]): row["holds"] for row in table.iter_rows(named=True)}
    assert held["gradient:norm=l2", "sensitivity"] is False
    assert held["leave_one_out:of=logit", "sensitivity"] is True
    assert held["random", "dummy"] is False
    assert held["gradient", "shift"] is False
    assert held["attention", "shift"] is True
    assert not any(axiom == "completeness" for _, axiom in held)
    error = rows().filter(test="shift", method="random").with_columns(
        test=pl.lit("completeness"), part=pl.lit(""), unchanged=None, value=pl.lit(0.02)
    )  # fmt: skip
    [row] = axioms_table(error).to_dicts()
    assert (row["axiom"], row["number"], row["holds"], row["texts"]) == ("completeness", 0.02, False, len(EXAMPLES))


@pytest.mark.slow
def test_all_default_methods_on_a_small_model() -> None:
    task = small_task(40)
    model = small_model(SHIFTABLE[2], task.split("train"))
    there = tuple(m for m in METHODS if m.split(":")[0] in IMPORTANCES)
    found = Sanity(methods=there, draws=1).rows(subject_of(model, task.split("train")[:6]))
    assert set(found["method"]) == set(there)
    assert found.filter(pl.col("test") == "completeness")["value"].is_finite().all()
