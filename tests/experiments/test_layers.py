"""Layers: conditions, accuracy and BLEU recomputed by hand, intervals over seeds, the figure, and what is refused."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sacrebleu
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common import translations as translating
from exegete.experiments.common.contract import asks_whole, unsuited
from exegete.experiments.common.section import QuestionResult
from exegete.experiments.common.translations import COLUMNS, translate_greedily
from exegete.experiments.layers import section
from exegete.experiments.layers.experiment import Layers
from exegete.experiments.layers.figure import layer_points
from exegete.interventions.contract import bound, renewed
from exegete.interventions.permute import Permute
from exegete.interventions.restriction import AtSites
from exegete.interventions.silence import Silence
from exegete.interventions.sites import group_sites
from exegete.interventions.uniform import Uniform
from exegete.measures.bleu import bleu_difference, bleu_interval
from exegete.measures.statistics import bootstrap_mean, crossed_mean
from exegete.models.build import make_model
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.transformer_translator import TransformerTranslator
from exegete.report.theme import to_svg
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import END, UNKNOWN
from exegete.training.evaluation import predict
from tests.small import small_model, texts, vocabulary
from tests.subjects import cell, subject_of

ASK = Layers()
TEXTS = texts(30)
CLASSES = Task("small", ("no", "yes"), {"train": TEXTS, "test": TEXTS}, "made up")
SPEC = "translator:architecture=transformer,hidden=8,heads=2,inner=12,layers=2,scale=0.7,tied=false"


def sentences(n: int) -> tuple[Example, ...]:
    draw = random.Random(3)
    words = [tuple(f"▁{draw.choice('abcde')}" for _ in range(3)) for _ in range(n)]
    return tuple(Example(i, (w, w[::-1]), 0) for i, w in enumerate(words))


PAIRS = sentences(8)
TRANSLATION = Task("pairs", (), {"train": PAIRS, "test": PAIRS}, "made up", kind="translation")


def classifier() -> PoolingClassifier:
    """Half of the texts are of each class for it."""
    model = small_model("transformer:size=7,hidden=6,heads=2,inner=10,scale=1,layers=3", TEXTS)
    with torch.no_grad():
        logits = predict(model, TEXTS)
        model.decoder.bias.sub_((logits[:, 1] - logits[:, 0]).median())
    return model


def translator() -> TransformerTranslator:
    """Untrained, but what it writes depends on the source."""
    torch.manual_seed(1)
    model = make_model(SPEC, vocabulary(PAIRS, wrap=True), ())
    assert isinstance(model, TransformerTranslator)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name and "embedding" not in name:
                parameter.mul_(12 if "cross" in name and ("value" in name or "out" in name) else 4)
        model.bias[UNKNOWN], model.bias[END] = -99, 3
    return model.eval().double()  # so that rounding decides nothing


@pytest.fixture(scope="module")
def classes() -> pl.DataFrame:
    return Layers(draws=2).rows(subject_of(classifier(), CLASSES))


@pytest.fixture(scope="module")
def translations() -> pl.DataFrame:
    return ASK.rows(subject_of(translator(), TRANSLATION))


def picked(frame: pl.DataFrame, group: str, layers: int) -> pl.DataFrame:
    return frame.filter(pl.col("group") == group, pl.col("layers") == layers)


def test_permuting_all_sites_is_the_intervention_everywhere() -> None:
    model = translator()
    batch = collate(PAIRS, model.vocabulary)
    some, every = AtSites(model.sites, Permute(seed=4)), Permute(seed=4)
    torch.testing.assert_close(model.trace(batch, intervene=some).logits, model.trace(batch, intervene=every).logits)
    assert (
        translate_greedily(model, PAIRS, some)
        == translate_greedily(model, PAIRS, every)
        != translate_greedily(model, PAIRS)
    )


def test_only_the_sites_that_are_meant_are_permuted() -> None:
    """Weights of a site above those that are permuted change too, but as the model's own; those below don't."""
    model = translator()
    batch, at = collate(PAIRS, model.vocabulary), AtSites(("decoder.0",), Permute())
    own, altered = (model.trace(batch, intervene=given).attention for given in (None, at))
    one = Permute(site="decoder.0")
    for site, weights in model.trace(batch, intervene=one).attention.items():
        torch.testing.assert_close(altered[site], weights)
    for site in ("encoder.0", "encoder.1"):
        torch.testing.assert_close(altered[site], own[site])
    torch.testing.assert_close(altered["decoder.0"].sort(-1).values, own["decoder.0"].sort(-1).values)
    assert float(altered["decoder.0"].detach().triu(1).abs().sum()) == 0  # no step sees a later one


def test_an_intervention_at_sites_is_bound_and_renewed() -> None:
    model = translator()
    with pytest.raises(UsageError, match="cross"):
        bound(AtSites(("cross.9",), Permute()), model)
    fresh = renewed(bound(AtSites(("cross.0",), Permute(seed=1)), model), 3)
    assert fresh == AtSites(("cross.0",), Permute(seed=1).renewed(3)) != AtSites(("cross.0",), Permute(seed=1))


def test_the_number_of_conditions(classes: pl.DataFrame, translations: pl.DataFrame) -> None:
    found = classes.select("group", "layers", "of").unique(maintain_order=True).rows()
    assert found == [("unaltered", 0, 0), ("encoder", 1, 3), ("encoder", 2, 3), ("encoder", 3, 3), ("attention", 1, 1)]
    assert classes.height == len(TEXTS) * 5
    assert translations.height == len(PAIRS) * (1 + 3 * 2)
    only = Layers(groups=("cross",)).rows(subject_of(translator(), TRANSLATION))
    assert set(only["group"]) == {"unaltered", "cross"}
    for layers in (1, 2):
        assert picked(only, "cross", layers).equals(picked(translations, "cross", layers))


def test_accuracy_by_hand(classes: pl.DataFrame) -> None:
    model, gold = classifier(), torch.tensor([e.label for e in TEXTS])
    summary = Layers(draws=2).summary(cell(classes))

    def right(sites: tuple[str, ...], draw: int) -> Tensor:
        at = AtSites(sites, Permute(seed=stable_seed("layers", 0, draw)))
        return (predict(model, TEXTS, at).argmax(-1) == gold).double()

    plain = (predict(model, TEXTS).argmax(-1) == gold).double()
    for row in summary.iter_rows(named=True):
        sites = group_sites(model.sites).get(row["group"], ())[: row["layers"]]
        values = (right(sites, 0) + right(sites, 1)) / 2
        interval, change = bootstrap_mean(values), bootstrap_mean(values - plain)
        assert (row["mean"], row["low"], row["high"]) == pytest.approx(interval[:3])
        assert (row["change"], row["change_low"], row["change_high"]) == pytest.approx(change[:3])
        assert row["unaltered"] == pytest.approx(plain.mean().item())
        assert (row["n"], row["seeds"], row["measure"]) == (30, 1, "accuracy")
        assert row["majority"] == pytest.approx(max(gold.sum().item(), 30 - gold.sum().item()) / 30)
    assert summary.filter(pl.col("change") != 0).height >= 2


def test_bleu_of_the_rows_is_that_of_sacrebleu(translations: pl.DataFrame) -> None:
    model, summary = translator(), ASK.summary(cell(translations))
    references = [" ".join(word[1:] for word in e.texts[1]) for e in PAIRS]
    for row in summary.iter_rows(named=True):
        sites = group_sites(model.sites).get(row["group"], ())[: row["layers"]]
        at = AtSites(sites, Permute(seed=stable_seed("layers", 0, 0)))
        expected = sacrebleu.corpus_bleu(translate_greedily(model, PAIRS, at), [references], force=True).score
        assert row["mean"] == pytest.approx(expected)
        assert (row["n"], row["measure"], row["majority"]) == (8, "BLEU", None)
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["change"] == pytest.approx(row["mean"] - row["unaltered"])
    assert summary["mean"].n_unique() > 3


def test_intervals_of_one_seed_resample_sentences(translations: pl.DataFrame) -> None:
    row = picked(ASK.summary(cell(translations)), "cross", 2).row(0, named=True)
    after, before = (
        torch.tensor(picked(translations, *which).select(COLUMNS).rows()) for which in (("cross", 2), ("unaltered", 0))
    )
    assert (row["mean"], row["low"], row["high"]) == pytest.approx(bleu_interval(after)[:3])
    difference = bleu_difference(after, before).difference
    assert (row["change"], row["change_low"], row["change_high"]) == pytest.approx(difference[:3])


def test_several_seeds(translations: pl.DataFrame) -> None:
    """BLEU is the mean over seeds; pseudo-values by taking each sentence out, in a loop."""
    other = translations.with_columns(pl.col("written", *(f"ngrams_{n}" for n in range(1, 5))) + 1)
    both = pl.concat([cell(translations), cell(other, seed=1)])
    row = picked(ASK.summary(both), "encoder", 1).row(0, named=True)
    values = []
    for rows in (translations, other):
        counts = torch.tensor(picked(rows, "encoder", 1).select(COLUMNS).rows())
        whole = bleu_interval(counts).mean
        left = [bleu_interval(torch.cat([counts[:i], counts[i + 1 :]]), draws=1).mean for i in range(len(counts))]
        pseudo = torch.tensor([len(counts) * whole - (len(counts) - 1) * out for out in left], dtype=torch.float64)
        values.append(pseudo - pseudo.mean() + whole)
    expected = crossed_mean(torch.stack(values))
    assert (row["seeds"], row["n"]) == (2, 16)
    assert row["mean"] == pytest.approx(expected.mean)
    assert (row["low"], row["high"]) == pytest.approx((max(0.0, expected.low), expected.high))
    unaltered = picked(ASK.summary(both), "unaltered", 0).row(0, named=True)
    assert row["change"] == pytest.approx(row["mean"] - unaltered["mean"])
    assert (unaltered["change"], unaltered["change_low"], unaltered["change_high"]) == pytest.approx((0, 0, 0))


def test_draws_are_pooled(translations: pl.DataFrame) -> None:
    model = translator()
    rows = picked(Layers(draws=2, groups=("cross",)).rows(subject_of(model, TRANSLATION)), "cross", 1)
    at = [AtSites(("cross.0",), Permute(seed=stable_seed("layers", 0, draw))) for draw in range(2)]
    texts_ = translate_greedily(model, PAIRS, at[0]) + translate_greedily(model, PAIRS, at[1])
    references = [" ".join(word[1:] for word in e.texts[1]) for e in PAIRS] * 2
    expected = sacrebleu.corpus_bleu(texts_, [references], force=True).score
    assert translating.bleu_scores(cell(rows))["mean"] == pytest.approx(expected)
    assert picked(translations, "unaltered", 0)["written"].sum() == sum(
        len(t.split()) for t in translate_greedily(model, PAIRS)
    )


def test_shards_are_the_whole(translations: pl.DataFrame) -> None:
    model, ask = translator(), Layers(groups=("decoder",))
    parts = [ask.rows(replace(subject_of(model, TRANSLATION), examples=some)) for some in (PAIRS[:3], PAIRS[3:])]
    assert pl.concat(parts).equals(translations.filter(pl.col("group").is_in(["unaltered", "decoder"])))


def test_the_figure_draws_what_was_measured(classes: pl.DataFrame, translations: pl.DataFrame) -> None:
    every = pl.concat([cell(classes), cell(translations, 0, SPEC, "pairs")])
    summary = ASK.summary(every)
    charts = ASK.figures(every, summary)
    assert list(charts) == ["layers_accuracy", "layers_bleu"]
    table = layer_points(summary.filter(pl.col("measure") == "accuracy"))
    assert table.height == (3 + 1) + (1 + 1)  # every line begins with the model as it is
    begin = table.filter(pl.col("layers") == 0)
    assert begin["mean"].to_list() == pytest.approx(begin["unaltered"].to_list())
    assert table["mean"].to_list()[2:] == pytest.approx((summary["mean"] * 100).to_list()[1:5])
    assert "pooling attention" in to_svg(charts["layers_accuracy"])
    assert "cross attention" in to_svg(charts["layers_bleu"])
    assert "nothing to show" in to_svg(ASK.figures(every, summary.filter(pl.col("layers") == 0))["layers_bleu"])


def test_the_report(classes: pl.DataFrame, translations: pl.DataFrame, tmp_path: Path) -> None:
    every = pl.concat([cell(classes), cell(translations, 0, SPEC, "pairs")])
    (tmp_path / "tables").mkdir()
    every.write_parquet(tmp_path / "tables" / "layers.parquet")
    ASK.summary(every).write_parquet(tmp_path / "tables" / "layers_summary.parquet")
    found = QuestionResult(tmp_path, "layers", ASK)
    assert section.headline(found).frame.height == 2 + 3
    (part,) = section.sections(found)
    assert [table.title for table in part.tables] == [
        "accuracy with ever more layers altered",
        "BLEU with ever more layers altered",
    ]
    assert len(part.figures) == 2


def test_whom_it_is_not_for() -> None:
    one = small_model("bilstm:size=4,hidden=3", TEXTS)
    assert "at most one attention" in str(unsuited(ASK, CLASSES, one))
    with pytest.raises(UsageError, match="at most one attention"):
        ASK.rows(subject_of(one, CLASSES))
    lacking = unsuited(Layers(groups=("cross",)), CLASSES, classifier())
    assert lacking == "it was asked about cross, and this model has encoder, attention"
    assert unsuited(ASK, CLASSES, classifier()) is None
    assert unsuited(ASK, TRANSLATION, translator()) is None


def test_it_asks_about_whole_translations() -> None:
    made = EXPERIMENTS.make("layers:draws=3")
    assert made == Layers(draws=3)
    assert asks_whole(made)
    assert (made.importances, made.splits, made.tables(pl.DataFrame())) == ((), (), {})


@pytest.mark.parametrize(
    ("settings", "sentence"), [({"draws": 0}, "1 or more"), ({"groups": ("cross", "cross")}, "only once")]
)
def test_bad_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Layers(**settings)


def test_layers_from_the_last_and_alone_under_any_intervention() -> None:
    """Every condition by hand: which sites, and what is done there."""
    model = classifier()
    ask = Layers(groups=("encoder",), interventions=("uniform", "silence"), orders=("last", "alone"))
    rows = ask.rows(subject_of(model, CLASSES))
    gold = torch.tensor([e.label for e in TEXTS])
    sites = ("encoder.0", "encoder.1", "encoder.2")
    for name, made in (("uniform", Uniform()), ("silence", Silence())):
        for order, layers, meant in (
            ("last", 1, sites[2:]),
            ("last", 2, sites[1:]),
            ("last", 3, sites),
            ("alone", 2, sites[1:2]),
        ):
            right = (predict(model, TEXTS, AtSites(meant, made)).argmax(-1) == gold).double()
            own = picked(rows, "encoder", layers).filter(pl.col("intervention") == name, pl.col("order") == order)
            by_id = dict(zip([e.id for e in TEXTS], right.tolist(), strict=True))
            assert own["value"].to_list() == [by_id[i] for i in own["example"]]
    told = ask.summary(cell(rows))
    assert told.height == 1 + 2 * 2 * 3
    drawn = layer_points(told)
    assert drawn["group"].unique(maintain_order=True).to_list() == [
        "encoder, made uniform, from the last", "encoder, silenced, from the last",
        "encoder, made uniform, one alone", "encoder, silenced, one alone",
    ]  # fmt: skip
    assert drawn.filter(pl.col("layers") == 0).height == 2
    assert to_svg(ask.figures(rows, told)["layers_accuracy"]).startswith("<svg")
    few = told.filter(pl.col("intervention") != "silence", pl.col("order") != "alone")
    names = ("uniform", "permute", "random")
    many = pl.concat([
        told.head(1), *(few.tail(3).with_columns(intervention=pl.lit(name), order=pl.lit(order))
                        for name in names for order in ("first", "last")),
    ])  # fmt: skip
    assert layer_points(many)["group"].unique(maintain_order=True).to_list() == [
        "encoder, from the first", "encoder, from the last",
    ]  # fmt: skip
    assert layer_points(many)["panel"].n_unique() == 3  # six lines would be more than there are colours


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"interventions": ()}, "at least one of its interventions"),
        ({"orders": ("first", "first")}, "at least one of its orders, and each once"),
        ({"interventions": ("shuffle",)}, "unknown intervention 'shuffle'"),
    ],
)
def test_what_is_done_is_checked(settings: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Layers(**settings)
