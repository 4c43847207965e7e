"""The explorer: milliseconds for a drag and for an edited text, alone and with 50 clients at once.

Bars are those of the server, from a request's arrival to the end of its answer; what a client waits for, which has its
own work on both, is printed beside, and has the bar where 50 of them ask at once.

python benchmarks/explorer.py [CHECKPOINT]     the default audit's model unless given
python benchmarks/explorer.py --small          a small model, few clients: that nothing here has rotted
"""

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from exegete.wings.explorer.guard import App, Buckets, Receive, Scope, Send
from exegete.wings.explorer.start import Background

TEXT = "it is a slow , dull film that never quite finds its feet , although the two leads are charming"
SMALL = "--small" in sys.argv
CLIENTS, DRAGS = (4, 5) if SMALL else (50, 20)
KEPT = Path(__file__).parents[1] / "tests" / "kept" / "0.1" / "checkpoints" / "bilstm"


SERVED: list[float] = []  # milliseconds of every request so far


def timed(app: App) -> App:
    """What the server answers with, and a watch."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        await app(scope, receive, send)
        SERVED.append(1000 * (time.perf_counter() - started))

    return answer


def main() -> None:
    source = str(KEPT) if SMALL else sys.argv[1] if len(sys.argv) > 1 else None
    with closing(Background([source], buckets=Buckets(1e5, 1e5))) as server:
        server.guard.app = timed(server.guard.app)
        while server.models[0].about.state == "loading":
            time.sleep(0.1)
        ask(f"http://127.0.0.1:{server.door.port}", server.door.token)


def ask(address: str, token: str) -> None:
    with closing(entered(address, token)) as client:
        while any(m["milliseconds"] is None and not m["cheap"] for m in client.get("/api/models").json()[0]["methods"]):
            time.sleep(0.2)
        keys = len(post(client, "open", text=TEXT)[1]["keys"])
        edits = [edit(client, n) for n in range(40)][5:]
        told("edit a word (prediction, cheap methods)", [server for server, _ in edits], 60, 150)
        told("  as its client sees it", [waited for _, waited in edits])
        before = post(client, "weigh", text=TEXT)[1]["openings"]
        drags = [seen(partial(drag, client, keys, n)) for n in range(200)]
        told("drag a weight", [server for server, _ in drags], 15)
        told("  as its client sees it", [waited for _, waited in drags])
        print(f"texts opened while dragging: {post(client, 'weigh', text=TEXT)[1]['openings'] - before}")
    with ThreadPoolExecutor(CLIENTS) as pool:
        each = list(pool.map(lambda n: one(address, token, keys, n), range(CLIENTS)))
    told(f"drag a weight, {CLIENTS} clients", [took for some in each for took in some], None, 500)


def edit(client: httpx.Client, number: int) -> tuple[float, float]:
    """Milliseconds of an edited text at the server and at the client."""
    return seen(lambda: sum(post(client, q, text=f"{TEXT} {number}")[0] for q in ("open", "explain")))


def seen(ask: Callable[[], float]) -> tuple[float, float]:
    """Milliseconds of some requests at the server and at the client, which has an answer before the watch stops."""
    before = len(SERVED)
    waited = ask()
    time.sleep(0.002)
    return sum(SERVED[before:]), waited


def one(address: str, token: str, keys: int, number: int) -> list[float]:
    with closing(entered(address, token)) as client:
        return [drag(client, keys, number + n) for n in range(DRAGS)]


def drag(client: httpx.Client, keys: int, number: int) -> float:
    weights = [(1 + (key * number) % 7) for key in range(keys)]
    row = {"row": 0, "weights": [weight / sum(weights) for weight in weights]}
    return post(client, "weigh", text=TEXT, rows=[row])[0]


def entered(address: str, token: str) -> httpx.Client:
    client = httpx.Client(timeout=120)
    entrance = client.get(f"{address}/", params={"token": token})
    client.base_url = entrance.url.join(entrance.headers["location"])
    return client


def post(client: httpx.Client, question: str, **asked: object) -> tuple[float, dict[str, Any]]:
    """Milliseconds, and the answer."""
    started = time.perf_counter()
    answer = client.post(f"/api/{question}", json={"model": 0, **asked})
    took = 1000 * (time.perf_counter() - started)
    answer.raise_for_status()
    return took, answer.json()


def told(what: str, milliseconds: list[float], p50: float | None = None, p95: float | None = None) -> None:
    cuts = statistics.quantiles(milliseconds, n=20)
    bars = ", ".join(f"{name} {bar} ms" for name, bar in (("p50", p50), ("p95", p95)) if bar is not None)
    print(f"{what:42} p50 {cuts[9]:6.1f} ms, p95 {cuts[18]:6.1f} ms" + (f"  (bar {bars})" if bars else ""))


if __name__ == "__main__":
    main()
