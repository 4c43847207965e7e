"""`exegete serve` as a person starts it: an address, a page, no torch in the server, and Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from exegete.wings.explorer.server import REPORT_POLICY
from tests.wings.explorer.serving import until

START = "from exegete.cli import main; main()"


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", START, "serve", *words]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has loaded is read from /proc")
def test_it_starts_answers_and_ends(folders: tuple[Path, Path]) -> None:
    started = subprocess.Popen(
        command(str(folders[0]), "--no-open", "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    address = started.stdout.readline().strip()
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        page = client.get(address)
        assert "Take hold of attention" in page.text
        models = f"{page.url}api/models"
        until(lambda: client.get(models).json()[0]["state"] == "ready")
        asked = {"model": 0, "text": "a b c"}
        assert client.post(models.replace("models", "open"), json=asked).json()["keys"] == ["a", "b", "c"]
    assert "libtorch" not in Path(f"/proc/{started.pid}/maps").read_text()
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert started.returncode == 0
    assert "Traceback" not in said
    assert "until you press Ctrl-C" in said


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has loaded is read from /proc")
def test_the_texts_of_a_run_need_no_torch_and_leave_nothing(run: Path, tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(str(run), "--no-open", "--port", "0"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert started.stdout is not None
    address = started.stdout.readline().strip()
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        inside = client.get(address).url
        asked = {"run": 0, "search": "fine"}
        found = client.post(f"{inside}api/texts", json=asked).json()
        assert found["total"] == len(found["rows"]) > 0
        report = client.get(f"{inside}runs/0/report")
        assert [report.headers.get_list("content-security-policy")] == [[REPORT_POLICY]]  # and no other beside it
    kept = [*tmp_path.glob("exegete-*/texts-0.parquet")]
    assert len(kept) == 1
    assert "libtorch" not in Path(f"/proc/{started.pid}/maps").read_text()
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert (started.returncode, "Traceback" in said) == (0, False)
    assert [*tmp_path.glob("exegete-*")] == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("nowhere",), 1, "there is no checkpoint or run folder nowhere"),
        (("--port", "70000"), 2, "a port is a number up to 65535"),
        (("--host", "192.0.2.1"), 1, "can't listen on 192.0.2.1"),
    ],
)
def test_what_can_not_start_is_one_sentence(words: tuple[str, ...], code: int, sentence: str) -> None:
    ended = subprocess.run(
        command("--no-open", *words), capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"}
    )
    assert ended.returncode == code
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ("others can reach" in ended.stderr) == ("--host" in words)
