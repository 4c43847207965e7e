"""Without a terminal, a line now and then says how far the work is; nobody who asked for quiet hears it."""

import time

import pytest

from exegete.base import heartbeat
from exegete.base.heartbeat import Heartbeat
from exegete.report.terminal import ProgressBars


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", 0.05)


def heard(capsys: pytest.CaptureFixture[str], sign: str) -> str:
    """What standard error says, as soon as the sign is there, or after ten seconds; standard output stays empty."""
    said, until = "", time.monotonic() + 10
    while sign not in said and time.monotonic() < until:
        time.sleep(0.02)
        out, err = capsys.readouterr()
        assert not out
        said += err
    return said


def test_a_line_says_what_was_heard_last(capsys: pytest.CaptureFixture[str]) -> None:
    with Heartbeat() as beat:
        assert "0:00 working" in heard(capsys, "working")
        beat("sst · bilstm · epoch", 3, 1200)
        assert "sst · bilstm · epoch 3/1,200" in heard(capsys, "1,200")
    time.sleep(0.2)
    capsys.readouterr()
    time.sleep(0.2)
    assert not capsys.readouterr().err  # it ends with the work


def test_bars_are_lines_without_a_terminal_and_nothing_where_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as bars:
        bars("one · now", 1, 2)
        assert "one · now 1/2" in heard(capsys, "1/2")
    time.sleep(0.2)
    capsys.readouterr()
    with ProgressBars(quiet=True) as bars:
        bars("one · now", 1, 2)
        time.sleep(0.2)
    assert not capsys.readouterr().err


def test_bars_show_names_with_their_brackets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if standard error were a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with ProgressBars() as bars:
        bars("file:my [1] [/b].csv · bilstm · text [2]", 1, 2)
    said = capsys.readouterr().err
    assert "my [1] [/b].csv" in said
    assert "text [2]" in said


def test_work_goes_on_where_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with Heartbeat() as beat:
        beat.say("a note")
        time.sleep(0.2)
