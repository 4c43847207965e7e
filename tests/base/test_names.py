"""Names with settings: one form, and the nearest right name where one is wrong."""

from dataclasses import dataclass

import pytest

from exegete.base.catalogue import Catalogue, Entry
from exegete.base.errors import UsageError, unknown
from exegete.base.names import parse


@dataclass(frozen=True)
class Thing:
    """Something with settings."""

    size: int = 3
    loud: bool = False


THINGS = Catalogue("thing", {"bell": Entry(Thing, "it rings")})


def test_specs_read_and_write() -> None:
    for written in (
        "sst",
        "bilstm:attention=dot,lam=0.5",
        "file:a/b.csv:text=review",
        "hf:owner/name:config=x",
        "file:a.csv",
    ):
        assert str(parse(written)) == written
    assert parse("file:a/b.csv:text=review") == ("file:a/b.csv", {"text": "review"})


@pytest.mark.parametrize("written", ["", "bell:size", "bell:=3", "bell:size=", "bell:size=1,size=2"])
def test_what_is_no_spec_is_one_sentence(written: str) -> None:
    with pytest.raises(UsageError):
        parse(written)


def test_things_are_made_with_checked_settings() -> None:
    assert THINGS.make("bell:size=5,loud=true") == Thing(5, True)
    for written, sentence in (
        ("bel", "did you mean 'bell'"),
        ("bell:sise=5", "did you mean 'size'"),
        ("bell:size=big", "size"),
    ):
        with pytest.raises(UsageError, match=sentence):
            THINGS.make(written)


def test_a_name_is_given_once() -> None:
    things = Catalogue("thing", {"bell": Entry(Thing, "it rings")})
    things.add("drum", Thing, "it booms")
    assert things.make("drum") == Thing()
    with pytest.raises(UsageError, match="already"):
        things.add("bell", dict, "another")


def test_far_names_are_listed() -> None:
    assert "choose from imdb, sst" in str(unknown("task", "zzzz", ["sst", "imdb"]))
