"""Leases: one owner at a time, free again when he gives it back, dies or is silent for long."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from exegete.base import lease
from exegete.base.errors import ExegeteError
from exegete.base.lease import EXPIRY, hold_lease


def write(path: Path, **facts: object) -> None:
    here = {"token": "theirs", "host": "elsewhere", "system": "another", "pid": 1}
    path.write_text(json.dumps(here | facts))


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_who_has_it_is_named_and_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".lock"
    with hold_lease(path):
        here = f"taken .process {os.getpid()} on .*, heard of 0 s ago"
        with pytest.raises(ExegeteError, match=here), hold_lease(path, "taken"):
            pass
        assert path.exists()  # whoever was refused leaves it alone
    assert list(path.parent.iterdir()) == []
    with hold_lease(path, "taken"):
        pass


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with hold_lease(tmp_path / ".lock"):
            order.append("second")

    with hold_lease(tmp_path / ".lock"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(3 * lease.WAIT)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_process_of_this_machine_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    hold = (
        f"from exegete.base.lease import hold_lease; from pathlib import Path; import time\n"
        f"with hold_lease(Path({str(tmp_path / '.lock')!r})): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(ExegeteError, match=f"taken .process {owner.pid} "), hold_lease(tmp_path / ".lock", "taken"):
            pass
        owner.kill()
    with hold_lease(tmp_path / ".lock", "taken"):  # at once, without waiting for its expiry
        pass


def test_a_silent_owner_elsewhere_loses_it_and_one_that_is_heard_does_not(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    write(path)
    aged(path, EXPIRY - 5)
    with (
        pytest.raises(ExegeteError, match=r"taken .process 1 on elsewhere, heard of 25 s ago"),
        hold_lease(path, "taken"),
    ):
        pass
    aged(path, EXPIRY + 5)
    with hold_lease(path, "taken"):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_an_owner_is_heard_of_and_gives_back_only_his_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT", 0.05)
    path = tmp_path / ".lock"
    with hold_lease(path):
        aged(path, EXPIRY + 5)
        time.sleep(0.5)
        with pytest.raises(ExegeteError, match="heard of 0 s ago"), hold_lease(path, "taken"):
            pass
        write(path)  # as if it had slept, and another had taken it over
    assert json.loads(path.read_text())["token"] == "theirs"


def test_who_is_quicker_keeps_what_he_took_over(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    write(path, token="quicker")
    lease._take_over(path, {"token": "expired"})
    assert json.loads(path.read_text())["token"] == "quicker"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_lock_of_an_earlier_version_is_no_lease(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    aged(tmp_path / ".lock", EXPIRY + 5)
    with hold_lease(tmp_path / ".lock", "taken"):
        pass
