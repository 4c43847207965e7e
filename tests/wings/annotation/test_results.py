"""What the answers say: tables by hand, intervals against slow ones, κ against its own tests."""

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from exegete.base.errors import ExegeteError, UsageError
from exegete.wings.annotation.results import ALL, CELLS, Annotated, join_answers, read_answers
from exegete.wings.annotation.sheets import FACTS, DrawnItems, ItemKey, Secret, Sheet, claim_folder
from exegete.wings.annotation.table import tables

Z = 1.959963984540054


def key_of(*items: tuple[str, bool]) -> ItemKey:
    """Items of a condition whose prediction is correct or not."""
    secrets = {
        f"k-{n:03d}": Secret(n, condition, "a", "a" if correct else "b", correct, "a", ("x", "y"))  # type: ignore[arg-type]
        for n, (condition, correct) in enumerate(items)
    }
    return ItemKey("k", dict.fromkeys(FACTS), secrets)


def sheet(name: str, answers: str) -> Sheet:
    """One letter per item: y, n, or - for none."""
    said = {f"k-{n:03d}": letter == "y" for n, letter in enumerate(answers) if letter != "-"}
    return Sheet(name, Path(name), said)


KEY = key_of(*[("original", True)] * 3, ("original", False), *[("permuted", True)] * 2, *[("permuted", False)] * 2)


def row(frame: pl.DataFrame, **where: str) -> dict[str, object]:
    (only,) = frame.filter(**where).to_dicts()
    return only


def test_the_four_cells_by_hand() -> None:
    found = join_answers(KEY, [sheet("ann", "yynyynnn"), sheet("bob", "yyyn-nyn")])
    assert row(found.crossed, annotator="ann", condition="original") == {
        "annotator": "ann", "condition": "original", "n": 4,
        "correct_relevant": 0.5, "correct_not_relevant": 0.25, "wrong_relevant": 0.25, "wrong_not_relevant": 0.0,
        "correct_relevant_n": 2, "correct_not_relevant_n": 1, "wrong_relevant_n": 1, "wrong_not_relevant_n": 0,
    }  # fmt: skip
    both = row(found.crossed, annotator=ALL, condition="permuted")
    assert [both[f"{cell}_n"] for cell in CELLS] == [1, 2, 1, 3]
    assert both["n"] == 7
    assert sum(float(str(both[cell])) for cell in CELLS) == pytest.approx(1)


def test_one_annotator_has_nobody_to_agree_with() -> None:
    found = join_answers(KEY, [sheet("ann", "yynyynnn")])
    assert set(found.crossed["annotator"]) == {"ann"}
    assert found.agreement.is_empty()
    assert len(tables(found)) == 2


def slow_wilson(yes: float, n: int) -> tuple[float, float]:
    """The two roots of |p̂ − p| = z √(p (1 − p) / n)."""
    a, b, c = 1 + Z**2 / n, -(2 * yes / n + Z**2 / n), (yes / n) ** 2
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_shares_and_their_difference() -> None:
    found = join_answers(KEY, [sheet("ann", "yynyynnn")]).relevant
    original, permuted = (row(found, of=condition) for condition in ("original", "permuted"))
    assert (original["share"], permuted["share"]) == (0.75, 0.25)
    assert (original["low"], original["high"]) == pytest.approx(slow_wilson(3, 4), abs=1e-9)
    assert (permuted["low"], permuted["high"]) == pytest.approx(slow_wilson(1, 4), abs=1e-9)
    difference = row(found, of="difference")
    (l1, u1), (l2, u2) = slow_wilson(3, 4), slow_wilson(1, 4)
    assert difference["share"] == 0.5
    assert difference["low"] == pytest.approx(0.5 - math.sqrt((0.75 - l1) ** 2 + (u2 - 0.25) ** 2), abs=1e-9)
    assert difference["high"] == pytest.approx(0.5 + math.sqrt((u1 - 0.75) ** 2 + (0.25 - l2) ** 2), abs=1e-9)
    assert (difference["n"], difference["items"]) == (8, 8)


def test_newcombes_example() -> None:
    """Newcombe (1998, table II): 56/70 − 48/80 has the interval 0.0524 to 0.3339 by method 10."""
    key = key_of(*[("original", True)] * 70, *[("permuted", True)] * 80)
    answers = "y" * 56 + "n" * 14 + "y" * 48 + "n" * 32
    difference = row(join_answers(key, [sheet("ann", answers)]).relevant, of="difference")
    assert difference["share"] == pytest.approx(0.2)
    assert (difference["low"], difference["high"]) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_two_answers_on_an_item_are_one_observation() -> None:
    key = key_of(*[("original", True)] * 60, *[("permuted", True)] * 60)
    answers = "yn" * 30 + "nnyn" * 15
    both = join_answers(key, [sheet("ann", answers), sheet("bob", answers)]).relevant
    together = row(both, annotator=ALL, of="original")
    assert (together["share"], together["items"], together["n"]) == (0.5, 60, 120)
    assert (together["low"], together["high"]) == pytest.approx(slow_wilson(30, 60), abs=1e-9)  # not of 120
    unequal = join_answers(KEY, [sheet("ann", "yyyn----"), sheet("bob", "yy--yynn")]).relevant
    original = row(unequal, annotator=ALL, of="original")  # 2, 2, 1 and 1 answers: 36 / 10 observations
    assert (original["share"], original["n"]) == (5 / 6, 6)
    assert (original["low"], original["high"]) == pytest.approx(slow_wilson(2.5, 3), abs=1e-9)


def test_agreement_over_what_both_answered() -> None:
    found = join_answers(KEY, [sheet("ann", "yynyynn-"), sheet("bob", "yyyn-nyn"), sheet("cat", "nnnnnnnn")])
    pair = row(found.agreement, first="ann", second="bob")
    ann, bob = [1, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 1]
    assert pair["n"] == 6
    assert pair["kappa"] == pytest.approx(cohen_kappa_score(ann, bob))
    assert (pair["observed"], pair["expected"]) == pytest.approx((3 / 6, 3 / 6 * 4 / 6 + 3 / 6 * 2 / 6))
    assert found.agreement.height == 3


def test_undefined_agreement_is_said() -> None:
    found = join_answers(KEY, [sheet("ann", "yyyyyyyy"), sheet("bob", "yyyyyyyy"), sheet("cat", "--------")])
    assert found.agreement["kappa"].to_list() == [None, None, None]
    assert "κ of ann and bob is undefined: both gave the same answer to all of their items" in found.notes
    assert "κ of ann and cat is undefined: they have no item in common" in found.notes
    assert row(found.agreement, first="ann", second="bob")["observed"] == 1
    assert "nan" not in repr(found.to_json()).lower()


def test_missing_answers_are_counted_and_the_way_on_is_said() -> None:
    found = join_answers(KEY, [sheet("ann", "yy------"), sheet("bob", "yynnyynn")])
    assert found.missing == {"ann": 6, "bob": 0}
    (note,) = [note for note in found.notes if "missing" in note]
    assert note.startswith(
        "ann has answered 2 of 8 items (6 missing): to go on, open the page again under the same name"
    )
    permuted = row(found.relevant, annotator="ann", of="permuted")
    assert (permuted["n"], permuted["share"], permuted["low"]) == (0, None, None)
    assert row(found.relevant, annotator="ann", of="difference")["share"] is None
    assert found.to_json()["annotators"][0] == {"annotator": "ann", "answered": 2, "missing": 6}
    assert all(cells for table in tables(found) for cells in table.cells())


@given(st.text("yn-", min_size=8, max_size=8), st.text("yn-", min_size=8, max_size=8))
@settings(max_examples=12, deadline=None)
def test_whatever_is_answered(first: str, second: str) -> None:
    found: Annotated = join_answers(KEY, [sheet("ann", first), sheet("bob", second)])
    for line in found.crossed.filter(pl.col("n") > 0).iter_rows(named=True):
        assert sum(line[f"{cell}_n"] for cell in CELLS) == line["n"]
        assert sum(line[cell] for cell in CELLS) == pytest.approx(1)
    answered = found.crossed.filter(pl.col("annotator") == ALL)["n"].sum()
    assert answered == sum(letter != "-" for letter in first + second)
    for line in found.relevant.drop_nulls().iter_rows(named=True):
        assert line["low"] <= line["share"] <= line["high"]
        assert -1 <= line["low"] <= line["high"] <= 1


def test_from_files(tmp_path: Path) -> None:
    claim_folder(tmp_path, DrawnItems((), KEY, ()))
    lines = [f"{item},yes" for item in list(KEY.secrets)[:5]]
    (tmp_path / "ann.csv").write_text("\n".join(["item,relevant", *lines]) + "\n")
    found = read_answers(tmp_path, [tmp_path / "ann.csv"])
    assert found.missing == {"ann": 3}
    assert found.frame.columns[-1] == "relevant"
    assert found.frame["relevant"].to_list() == [True] * 5 + [None] * 3
    with pytest.raises(ExegeteError, match=r"5 of 8 items \(3 missing\)"):
        read_answers(tmp_path, [tmp_path / "ann.csv"], strict=True)
    with pytest.raises(UsageError, match="name at least one sheet"):
        read_answers(tmp_path, [])
