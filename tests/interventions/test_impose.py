"""Impose: stored weights come back on their words, and whatever doesn't fit is a sentence."""

import math
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.interventions.uniform import Uniform
from exegete.models.build import make_classifier
from exegete.models.projections import Softmax
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.evaluation import predict
from tests.interventions.sites import random_site, site_of
from tests.small import SPECS, batch_of, small_model, texts

EXAMPLES = texts(8, seed=3)
ROWS = {("a", "b", "c"): torch.tensor([0.5, 0.3, 0.2]), ("c",): torch.tensor([1.0])}


@pytest.mark.parametrize("wrap", [False, True])
def test_the_weights_of_another_model(wrap: bool) -> None:
    """Another model's weights on the same texts, wherever they stand in the batch."""
    source, target = small_model(SPECS[0], EXAMPLES), small_model(SPECS[4], EXAMPLES, wrap)
    at = Impose(table=WeightTable.of(source, EXAMPLES))
    batch = batch_of(target, EXAMPLES)
    with torch.no_grad():
        imposed = target.trace(batch, intervene=at).attention["attention"]
        for place, example in enumerate(EXAMPLES):
            own = source.trace(batch_of(source, [example])).attention["attention"][0, 0, 0]
            torch.testing.assert_close(imposed[place, 0, 0][batch.words[place]], own, atol=1e-6, rtol=0)
    assert not torch.allclose(predict(target, EXAMPLES, at), predict(target, EXAMPLES))


def test_the_weights_of_an_altered_model() -> None:
    source = small_model(SPECS[0], EXAMPLES)
    table = WeightTable.of(source, EXAMPLES, Uniform())
    assert all(torch.allclose(row, torch.full_like(row, 1 / len(row))) for row in table.rows.values())


def test_a_key_that_is_no_word_is_left_out() -> None:
    """A null key takes most of the mass; the words' own shares of the rest are what is stored."""
    model = make_classifier("ladder:size=4,scale=1", fit_vocabulary(EXAMPLES), ("no", "yes")).eval()
    table = WeightTable.of(model, EXAMPLES)
    for example in EXAMPLES:
        batch = batch_of(model, [example])
        own = model.trace(batch).attention["attention"][0, 0, 0][batch.words[0]].detach()
        assert float(own.sum()) < 0.5
        torch.testing.assert_close(table.rows[example.words], own / own.sum())


def test_weights_of_sentences_are_not_of_words() -> None:
    model = make_classifier("hierarchical:size=4,hidden=4", fit_vocabulary(EXAMPLES), ("no", "yes"))
    with pytest.raises(UsageError, match="is not over words"):
        WeightTable.of(model, EXAMPLES)


def test_a_file_by_name(tmp_path: Path) -> None:
    source, target = (small_model(spec, EXAMPLES) for spec in (SPECS[0], SPECS[4]))
    table = WeightTable.of(source, EXAMPLES)
    table.write(tmp_path / "weights.parquet")
    again = WeightTable.read(tmp_path / "weights.parquet")
    assert again.hash == table.hash
    assert repr(again) == repr(table)
    at = bound(INTERVENTIONS.make(f"impose:file={tmp_path / 'weights.parquet'}"), target)
    torch.testing.assert_close(predict(target, EXAMPLES, at), predict(target, EXAMPLES, Impose(table=table)))


def test_words_that_the_model_does_not_know() -> None:
    """Two texts that look the same to the model have the mean of their weights."""
    vocabulary = fit_vocabulary([Example(0, (("a", "b"),), 0)])
    rows: dict[tuple[str, ...], Tensor] = {("a", "x"): torch.tensor([0.8, 0.2]), ("a", "y"): torch.tensor([0.4, 0.6])}
    seen = WeightTable(rows).seen(vocabulary)
    assert [row.tolist() for row in seen.values()] == [pytest.approx([0.6, 0.4])]


def test_a_text_without_words_needs_no_weights() -> None:
    model = small_model(SPECS[0], EXAMPLES, wrap=True)
    at = Impose(table=WeightTable(ROWS))
    empty, batch = (batch_of(model, (Example(0, ((),), 0), Example(1, (("c",),), 1))[:n]) for n in (1, 2))
    assert model.trace(empty, intervene=at).attention["attention"].sum() == 0
    assert model.trace(batch, intervene=at).attention["attention"].sum((1, 2, 3)).tolist() == [0, 1]


def test_every_head_and_query_gets_the_same() -> None:
    vocabulary = fit_vocabulary([Example(0, (tuple("abcdef"),), 0)])
    site = site_of(torch.zeros(1, 2, 3, 6), torch.ones(1, 6).bool(), [5], Softmax())
    row = torch.tensor([0.1, 0.1, 0.1, 0.2, 0.2, 0.3])
    site = site._replace(batch=site.batch._replace(reader=vocabulary))
    found = Impose(table=WeightTable({tuple("abcdef"): row}))(site)
    torch.testing.assert_close(found, row.expand(1, 2, 3, 6))


def test_no_stored_row() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    at = Impose(table=WeightTable(ROWS))
    with pytest.raises(ExegeteError, match="no weights are stored for the words of text 12"):
        predict(model, [Example(12, (("b", "c"),), 0)], at)


def test_a_row_of_another_length() -> None:
    """A site with other keys than words: a text's sentences, for instance."""
    vocabulary = fit_vocabulary([Example(0, (tuple("abcdef"),), 0)])
    site = site_of(torch.zeros(1, 1, 1, 3), torch.ones(1, 3).bool(), [5])
    one = random_site(0, Softmax()).batch.rows(torch.tensor([0]))._replace(reader=vocabulary)
    at = Impose(table=WeightTable({tuple("abcdef"): torch.full((6,), 1 / 6)}))
    with pytest.raises(ExegeteError, match="stored for text 4 are 6, but at site 'attention' it has 3 keys"):
        at(site._replace(batch=one))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([0.5, 0.3], "'a b c' has 3 words but 2 weights"),
        ([0.5, 0.3, 0.1], "the weights of the text 'a b c' sum to 0.9: divide them by their sum"),
        ([0.5, 0.3, 0.2 + 2e-4], "sum to 1.0002"),
        ([0.8, 0.3, -0.1], "'a b c' has a weight of -0.1"),
        ([math.nan, 0.5, 0.5], "has a weight of nan"),
        ([math.inf, 0.5, 0.5], "has a weight of inf"),
        ([0.0, 0.0, 0.0], "sum to 0"),
    ],
)
def test_weights_that_are_no_distribution(row: list[float], said: str, tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=said):
        WeightTable({**ROWS, ("a", "b", "c"): torch.tensor(row, dtype=torch.float64)})
    path = tmp_path / "w.parquet"
    pl.DataFrame({"words": [["c"], ["a", "b", "c"]], "weights": [[1.0], row]}).write_parquet(path)
    with pytest.raises(ExegeteError, match=rf"w\.parquet: .*{said}"):
        WeightTable.read(path)


def test_rounded_weights_are_fine() -> None:
    WeightTable({("a", "b", "c"): torch.tensor([0.3333, 0.3333, 0.3333 + 1e-5])})
    WeightTable({("a",): torch.tensor([1]), (): torch.zeros(0)})


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pl.DataFrame({"words": [["a"]]}), "no column 'weights'"),
        (pl.DataFrame({"words": ["a"], "weights": [[1.0]]}), "the column 'words' of .* holds String"),
        (pl.DataFrame({"words": [["a"]], "weights": [["1"]]}), "the column 'weights' of .* holds"),
        (pl.DataFrame({"words": [["a"], ["b"]], "weights": [[1.0], [None]]}), "row 2: a word or a weight is missing"),
        (pl.DataFrame({"words": [["a"], None], "weights": [[1.0], [1.0]]}), "row 2: a word or a weight is missing"),
        (pl.DataFrame({"words": [["a"], ["a"]], "weights": [[1.0], [0.5, 0.5]]}), "different numbers of weights"),
    ],
)
def test_files_that_hold_something_else(frame: pl.DataFrame, said: str, tmp_path: Path) -> None:
    frame.write_parquet(tmp_path / "w.parquet")
    with pytest.raises(ExegeteError, match=said):
        WeightTable.read(tmp_path / "w.parquet")


def test_no_file(tmp_path: Path) -> None:
    model = small_model(SPECS[0], EXAMPLES)
    with pytest.raises(ExegeteError, match="there is no file of weights"):
        bound(Impose(file=str(tmp_path / "none.parquet")), model)
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(ExegeteError, match="can't be read as parquet"):
        WeightTable.read(tmp_path / "text.parquet")


def test_nothing_to_impose() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    with pytest.raises(UsageError, match="write impose:file=weights"):
        bound(INTERVENTIONS.make("impose"), model)
    with pytest.raises(UsageError, match="instance of WeightTable"):
        INTERVENTIONS.make("impose:table=x")
