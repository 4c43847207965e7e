"""Necessity: changes known by hand, the formulas written again, companions under their own attention."""

from dataclasses import replace

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject, recipes, unsuited
from exegete.experiments.necessity.experiment import Necessity
from exegete.interventions.permute import Permute
from exegete.interventions.random import Random
from exegete.interventions.uniform import Uniform
from exegete.measures.statistics import bootstrap_mean, crossed_mean
from exegete.models.build import build, make_classifier
from exegete.models.contract import Predictor
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.evaluation import predict
from exegete.training.fit import Fit
from exegete.training.recipe import Companion, Recipe
from exegete.training.settings import TrainingSettings
from tests.margins import BY, lead
from tests.small import small_model, small_task
from tests.subjects import cell, subject_of
from tests.toy import Toy

ASK = Necessity()
WORDS = (("a", "b"), ("a", "b", "b"), ("b", "b"), ("a",), ("b", "a", "b", "b", "b"), ("b",))
EXAMPLES = tuple(Example(i + 5, (words,), int("a" in words)) for i, words in enumerate(WORDS))
TASK = Task("hand", ("no", "yes"), {"train": EXAMPLES, "dev": EXAMPLES, "test": EXAMPLES}, "by hand")


def attentive() -> PoolingClassifier:
    """Says yes where most weight is on words a: its own attention looks at nothing else."""
    model = small_model("average:size=1,hidden=2", EXAMPLES)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight[model.vocabulary.index["a"]] = 10.0
        model.embedding.weight[model.vocabulary.index["b"]] = -10.0
        dict(model.encoder.named_parameters())["linear.weight"][0] = 1.0  # h = (±1, 0)
        model.decoder.weight[0, 0] = 1.0  # z is the weight on a minus the weight on b
        model.scorer.linear.weight[0, 0] = 5.0  # 20 on a, −20 on b
        dict(model.scorer.named_parameters())["outer.weight"][0, 0] = 20.0
    return model


def subject(model: Predictor | None = None, **companions: Companion) -> Subject:
    return subject_of(model or attentive(), TASK, companions=companions)


def column(rows: pl.DataFrame, name: str, **where: str) -> list[object]:
    return rows.filter(*(pl.col(k) == v for k, v in where.items())).sort("example")[name].to_list()


def test_rows_known_by_hand() -> None:
    """With uniform weights the text says yes where more words are a than b; a tie says no."""
    rows = ASK.rows(subject())
    uniform = {"condition": "uniform", "when": "inference"}
    assert column(rows, "correct", **uniform) == [1] * 6
    assert column(rows, "altered_predicted", **uniform) == ["no", "no", "no", "yes", "no", "no"]
    assert column(rows, "value", **uniform) == [-1, -1, 0, 0, -1, 0]
    assert column(rows, "gold", **uniform) == column(rows, "predicted", **uniform)
    assert column(rows, "n", **uniform) == [2, 3, 2, 1, 5, 1]
    assert set(zip(rows["condition"], rows["when"], strict=True)) == {
        ("uniform", "inference"), ("random", "inference"), ("permute", "inference")
    }  # fmt: skip


def test_random_and_permuted_weights_are_those_of_the_interventions() -> None:
    model = attentive()
    rows = replace(ASK, seed=4).rows(subject(model))
    for name, intervention in (("random", Random(seed=4)), ("permute", Permute(seed=4))):
        answers = predict(model, EXAMPLES, intervention).argmax(-1)
        assert column(rows, "altered_predicted", condition=name) == [TASK.labels[c] for c in answers.tolist()]


def test_companions_answer_under_their_own_attention() -> None:
    """The companion has attention that would find a, but learnt, and answers, with uniform weights."""
    beside = {"uniform": Companion(attentive(), Uniform()), "none": Companion(attentive())}
    rows = ASK.rows(replace(subject(), companions=beside))
    assert column(rows, "value", condition="uniform", when="training") == [-1, -1, 0, 0, -1, 0]
    assert column(rows, "value", condition="none", when="training") == [0] * 6
    assert column(rows, "value", condition="random", when="training") == []  # not trained


def test_both_levels_are_altered() -> None:
    """A hierarchical model answers as it does when weights at both of its sites are uniform, text by text."""
    texts = (("a", "b", ".", "b", "b", "."), ("b", ".", "a", "a", "b", "."), ("a", "b", "."))
    examples = tuple(Example(i, (words,), i % 2) for i, words in enumerate(texts))
    torch.manual_seed(2)
    model = make_classifier("hierarchical:size=4,hidden=3,scale=2", fit_vocabulary(examples), ("no", "yes")).eval()
    asked = subject_of(model, TASK, examples)
    assert unsuited(ASK, TASK, model) is None
    rows = Necessity(trained=(), inferred=("uniform",)).rows(asked)
    with torch.no_grad():
        traces = [model.trace(model.collate([e]), intervene=Uniform()) for e in examples]
    for trace in traces:
        for weights in trace.attention.values():
            assert all(len(set(row[row > 0].tolist())) <= 1 for row in weights.flatten(0, -2))
    logits = torch.cat([trace.logits for trace in traces])
    assert all(lead(row) > BY for row in logits.tolist())
    answers = logits.argmax(-1).tolist()
    assert rows["altered_predicted"].to_list() == [TASK.labels[c] for c in answers]


def slow_f1(predicted: list[str], gold: list[str], of: str) -> float:
    both = sum(p == g == of for p, g in zip(predicted, gold, strict=True))
    precision = both / max(1, predicted.count(of))
    recall = both / max(1, gold.count(of))
    return 2 * precision * recall / (precision + recall) if both else 0.0


def test_the_summary_written_again() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    assert summary.height == 3
    for row in summary.iter_rows(named=True):
        mine = {name: column(rows, name, condition=row["condition"]) for name in rows.columns}
        change = bootstrap_mean(torch.tensor(mine["value"]))
        assert (row["seeds"], row["n"], row["single"]) == (1, 6, 2)
        assert row["change"] == pytest.approx(sum(mine["value"]) / 6)  # type: ignore[arg-type]
        assert row["change"] == pytest.approx(row["after"] - row["before"])
        assert (row["low"], row["high"]) == pytest.approx((change.low, change.high))
        f1 = [slow_f1(mine[p], mine["gold"], "yes") for p in ("predicted", "altered_predicted")]  # type: ignore[arg-type]
        assert (row["f1_before"], row["f1_after"]) == pytest.approx(f1)
        assert row["f1_change"] == pytest.approx(f1[1] - f1[0])
        assert row["f1_low"] - 1e-9 <= row["f1_change"] <= row["f1_high"] + 1e-9
        flipped = sum(a != b for a, b in zip(mine["predicted"], mine["altered_predicted"], strict=True))
        assert row["flipped"] == pytest.approx(flipped / 6)
        assert row["majority"] == pytest.approx(4 / 6)


def many(n: int, seeds: int, classes: int = 2) -> pl.DataFrame:
    """Rows of a model that is right 8 times in 10, and of an altered one that is right 7 times in 10."""
    draw = torch.Generator().manual_seed(0)
    labels = [f"c{i}" for i in range(classes)]

    def said(gold: Tensor, rate: float) -> Tensor:
        wrong = (gold + 1 + torch.randint(classes - 1, (n,), generator=draw)) % classes
        return torch.where(torch.rand(n, generator=draw) < rate, gold, wrong)

    gold = torch.randint(classes, (n,), generator=draw)
    parts = []
    for seed in range(seeds):
        own, other = said(gold, 0.8), said(gold, 0.7)
        frame = pl.DataFrame(
            {
                "example": list(range(n)), "n": [9] * n, "gold": [labels[c] for c in gold],
                "predicted": [labels[c] for c in own],
                "positive": pl.Series(["c1" if classes == 2 else None] * n, dtype=pl.String),
                "condition": ["uniform"] * n, "when": ["training"] * n,
                "correct": (own == gold).long().tolist(), "altered_correct": (other == gold).long().tolist(),
                "altered_predicted": [labels[c] for c in other],
                "value": ((other == gold).double() - (own == gold).double()).tolist(),
            }
        )  # fmt: skip
        parts.append(cell(frame, seed))
    return pl.concat(parts)


@pytest.mark.parametrize(("seeds", "classes"), [(1, 2), (3, 2), (1, 4), (3, 4)])
def test_many_texts_several_seeds_and_classes(seeds: int, classes: int) -> None:
    """F1 is the mean over seeds of each seed's own; its interval is as wide as a bootstrap's of the whole statistic."""
    rows = many(400, seeds, classes)
    (row,) = ASK.summary(rows).iter_rows(named=True)
    of = ["c1"] if classes == 2 else [f"c{i}" for i in range(classes)]

    def mean_f1(frame: pl.DataFrame, predicted: str) -> float:
        every = [slow_f1(frame[predicted].to_list(), frame["gold"].to_list(), name) for name in of]
        return sum(every) / len(every)

    by_seed = rows.partition_by("seed")
    for name, predicted in (("f1_before", "predicted"), ("f1_after", "altered_predicted")):
        assert row[name] == pytest.approx(sum(mean_f1(frame, predicted) for frame in by_seed) / seeds)
    assert (row["seeds"], row["n"]) == (seeds, 400 * seeds)
    assert row["low"] < row["change"] < row["high"]
    if seeds == 1:
        drawn = [rows.sample(400, with_replacement=True, seed=i) for i in range(200)]
        spread = torch.tensor([mean_f1(s, "altered_predicted") - mean_f1(s, "predicted") for s in drawn]).std()
        assert row["f1_high"] - row["f1_low"] == pytest.approx(2 * 1.96 * float(spread), rel=0.2)


def test_seeds_that_agree_by_luck_do_not_make_an_interval_of_no_width() -> None:
    """Two seeds lose one text of 50 each, another one: their means are equal, and so is nothing else."""
    rows = many(50, 2).with_columns(value=pl.lit(0.0))
    lost = pl.col("example") == pl.col("seed")
    (row,) = ASK.summary(rows.with_columns(value=pl.when(lost).then(-1.0).otherwise("value"))).iter_rows(named=True)
    values = torch.zeros(2, 50).double()
    values[0, 0] = values[1, 1] = -1.0
    expected = crossed_mean(values)
    assert (row["low"], row["change"], row["high"]) == pytest.approx((expected.low, -0.02, expected.high))
    assert row["high"] - row["low"] > 0.04


def test_recipes() -> None:
    found = recipes(ASK, "bilstm:attention=dot,hidden=64", 3)
    assert found == {
        "uniform": Recipe(attention="uniform"),
        "random": Recipe(attention="random:seed=3"),
        "permute": Recipe(attention="permute:seed=3"),
        "none": Recipe(model="bilstm:attention=none,hidden=64"),
    }
    assert recipes(ASK, "flat:encoder=conv", 0)["none"] == Recipe(model="flat:encoder=conv,attention=none")
    for kind in ("hierarchical", "ladder", "rationale"):
        assert "none" not in recipes(ASK, kind, 0)
    assert recipes(Necessity(trained=("uniform",), epochs=2), "cnn", 0) == {
        "uniform": Recipe(attention="uniform", epochs=2)
    }


def test_trained_companions() -> None:
    """Where one word decides, attention helps a model of single words; all of its recipes can be trained."""
    task = small_task(60)
    spec = "average:size=4,hidden=4"
    settings = TrainingSettings(epochs=1, lr=0.02, metric="accuracy")
    base = build(spec, task)
    companions = {}
    for name, recipe in ASK.companions(spec, 0).items():
        model = build(recipe.model or spec, task)
        at = {"uniform": Uniform(), "random": Random(), "permute": Permute()}.get(name)
        Fit(model, task, settings, 0, at).run()
        companions[name] = Companion(model, at)
    summary = ASK.summary(cell(ASK.rows(subject_of(base, task, companions=companions))))
    assert summary.height == 7
    assert not summary.select(pl.any_horizontal(pl.all().is_null())).to_series().any()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"trained": (), "inferred": ()}, "at least one intervention"),
        ({"trained": ("uniform", "uniform")}, "only once"),
        ({"inferred": ("none",)}, "has to be trained"),
        ({"trained": ("unifrom",)}, "did you mean 'uniform'"),
        ({"inferred": ("remove:count=0",)}, "at least 1"),
        ({"epochs": 0}, "epochs is 1 or more"),
    ],
)
def test_wrong_settings(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Necessity(**settings)  # type: ignore[arg-type]


def test_models_without_attention_are_not_asked() -> None:
    model = make_classifier("bilstm:size=4,hidden=4,attention=none", fit_vocabulary(EXAMPLES), ("no", "yes")).eval()
    assert "this model has none" in (unsuited(ASK, TASK, model) or "")
    with pytest.raises(UsageError, match="replaces attention, and this model has none"):
        ASK.rows(subject(model))
    assert "Toy can't be trained" in (unsuited(ASK, TASK, Toy()) or "")
