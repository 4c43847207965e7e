"""Memory stays flat: `python -m tools.soak_explorer --clients 50 --seconds 600 --out results/explorer [CHECKPOINT]`.

So many clients drag weights at once on a real `exegete serve`, each its own text, each asking again when it was
answered. Every few seconds the resident memory of the server and of all its workers is read, with the answers so far
and what was no answer. A curve that rises says that something is kept which nobody asks for any more.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import altair as alt
import httpx
import polars as pl

from exegete.base.files import write_text
from exegete.page.theme import inline, themed, to_svg

TEXT = "it is a slow , dull film that never quite finds its feet , although the two leads are charming"
START = "from exegete.cli import main; main()"
WARM = 0.25  # of the time: what is loaded on the way is loaded then
PATIENCE = 120.0


@contextmanager
def served(source: str | None) -> Iterator[tuple[int, str]]:
    """The server's process and the address that it printed, with a model that is ready."""
    words = [*([] if source is None else [source]), "--no-open", "--port", "0"]
    command = [sys.executable, "-c", START, "serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            address = started.stdout.readline().strip()
            with closing(entered(address)) as client:
                while not _measured(client.get("/api/models").json()[0]):
                    time.sleep(0.2)
            yield started.pid, address
        finally:
            started.terminate()


def _measured(about: dict[str, Any]) -> bool:
    """Whether a model answers, and nothing else goes on."""
    dear = [method for method in about["methods"] if not method["cheap"]]
    return about["state"] == "ready" and all(method["milliseconds"] is not None for method in dear)


def entered(address: str) -> httpx.Client:
    """Somebody who came with the token."""
    client = httpx.Client(timeout=PATIENCE)
    entrance = client.get(address)
    client.base_url = entrance.url.join(entrance.headers["location"])
    return client


def dragging(address: str, number: int, pause: float, until: float, said: "Counter[str]") -> None:
    """One client, who drags one weight after another."""
    text = f"{TEXT} {number}"
    with closing(entered(address)) as client:
        opened = client.post("/api/open", json={"model": 0, "text": text}).json()
        keys, row = len(opened["keys"]), 0
        while time.monotonic() < until:
            row += 1
            weights = [1 + (key * row) % 7 for key in range(keys)]
            asked = [{"row": 0, "weights": [weight / sum(weights) for weight in weights]}]
            answer = client.post("/api/weigh", json={"model": 0, "text": text, "rows": asked})
            said["answers" if answer.status_code == 200 else "errors"] += 1
            time.sleep(pause)


def megabytes(process: int) -> float:
    """Resident memory of a process."""
    line = next(each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def children(process: int) -> list[int]:
    """Those that a process started."""
    found = [each.read_text().split() for each in Path(f"/proc/{process}/task").glob("*/children")]
    return sorted(int(number) for numbers in found for number in numbers)


def soaked(source: str | None, clients: int, seconds: float, pause: float = 0.0, every: float = 5.0) -> pl.DataFrame:
    """Memory by time: a row every few seconds."""
    rows: list[dict[str, float]] = []
    with served(source) as (process, address):
        said: Counter[str] = Counter()
        began = time.monotonic()
        until = began + seconds
        threads = [
            threading.Thread(target=dragging, args=(address, number, pause, until, said)) for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            rows.append(
                {
                    "seconds": round(time.monotonic() - began, 1),
                    "server_mb": round(megabytes(process), 1),
                    "workers_mb": round(sum(map(megabytes, children(process))), 1),
                    "answers": said["answers"],
                    "errors": said["errors"],
                }
            )
            time.sleep(every)
    return pl.DataFrame(rows)


def growth(curve: pl.DataFrame) -> float:
    """Megabytes that all processes grew by after they were warm: the median of the last part against the first."""
    whole = curve.with_columns(mb=pl.col("server_mb") + pl.col("workers_mb"))
    warm = whole.filter(pl.col("seconds") >= WARM * pl.col("seconds").max())["mb"]
    part = max(1, warm.len() // 4)
    first, last = warm.head(part).median(), warm.tail(part).median()
    assert isinstance(first, float)
    assert isinstance(last, float)
    return last - first


def drawn(curve: pl.DataFrame) -> alt.Chart:
    """Resident memory of the server and of its workers while clients drag weights."""
    names = {"server_mb": "server", "workers_mb": "workers"}
    table = curve.unpivot(list(names), index="seconds", variable_name="process", value_name="mb").with_columns(
        pl.col("process").replace_strict(names), minutes=pl.col("seconds") / 60
    )
    base = alt.Chart(inline(table)).mark_line(strokeWidth=1.8).properties(width=520, height=220)
    chart: alt.Chart = base.encode(
        x=alt.X("minutes:Q", axis=alt.Axis(title="minutes", grid=False)),
        y=alt.Y("mb:Q", axis=alt.Axis(title="resident memory, MB")),
        color=alt.Color("process:N", title=None),
    )
    return themed(chart, (drawn.__doc__ or "").strip(), table)


def main() -> None:
    """Soak, and keep the curve as a table and as a figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("checkpoint", nargs="?")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between an answer and the next drag")
    parser.add_argument("--out", type=Path, default=Path("results/explorer"))
    asked = parser.parse_args()
    curve = soaked(asked.checkpoint, asked.clients, asked.seconds, asked.pause)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_text(asked.out / "memory.csv", curve.write_csv())
    write_text(asked.out / "memory.svg", to_svg(drawn(curve)))
    last = curve.row(-1, named=True)
    print(
        f"{asked.clients} clients, {last['seconds']:.0f} s, pauses of {asked.pause} s: {last['answers']:,} answers, "
        f"{last['errors']:,} errors; {last['server_mb'] + last['workers_mb']:.0f} MB at the end, "
        f"{growth(curve):+.1f} MB since it was warm"
    )


if __name__ == "__main__":
    main()
