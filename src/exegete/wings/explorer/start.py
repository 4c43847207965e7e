"""Start: a port, a token, the workers and the server; one address is printed, and Ctrl-C ends it all."""

import asyncio
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from exegete.plugins import ExegeteError, UsageError
from exegete.wings.explorer.guard import NOBODY, Buckets, Door, Guard
from exegete.wings.explorer.headers import TimedHeaders
from exegete.wings.explorer.server import make_app
from exegete.wings.explorer.workers import Served

PORT, LOOPBACK = 8077, "127.0.0.1"
CONNECTIONS = 512
Say = Callable[[str], None]


def serve(
    sources: Sequence[str] = (), host: str = LOOPBACK, port: int = PORT, browser: bool = True, say: Say = print
) -> None:
    """Serve the models of these checkpoints and runs, or else the default audit's, until somebody presses Ctrl-C."""
    for source in sources:
        check_source(source)
    listening = bind_socket(host, port)
    door = door_of(host, listening.getsockname()[1])
    models = [Served(number, source) for number, source in enumerate(sources or (None,))]
    try:
        address = f"http://{_shown(host)}:{door.port}/?token={door.token}"
        say(address)
        if browser and _seen():
            webbrowser.open(address)
        asyncio.run(_served(Guard(make_app(models), door), listening))
    except KeyboardInterrupt:
        pass  # uvicorn has ended by then, and passes on what ended it
    finally:
        for model in models:
            model.close()


class Background:
    """The explorer in a thread of this process, on any free port, until `close`: for notebooks, and for tests."""

    def __init__(self, sources: Sequence[str | None], frames: str = NOBODY, buckets: Buckets | None = None) -> None:
        self._listening = bind_socket(LOOPBACK, 0)
        self.door = Door(self._listening.getsockname()[1], frames=frames)
        self.models = [Served(number, source) for number, source in enumerate(sources)]
        self.guard = Guard(make_app(self.models), self.door, buckets)
        self._server = uvicorn.Server(_config(self.guard))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, and let the workers go."""
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()
        for model in self.models:
            model.close()


def check_source(source: str) -> None:
    """Refuse what is neither a folder nor a name with settings, before anything starts."""
    if ":" not in source and not Path(source).is_dir():
        raise ExegeteError(
            f"there is no checkpoint or run folder {source}: train one with `exegete train … --out {source}`"
        )


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; a port that is taken is one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends answers at once: else each waits 40 ms for the rest of itself (Nagle).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # whoever opens the address as soon as it is printed waits, and is not refused
    except OSError as error:
        listening.close()
        said = error.strerror or str(error)
        raise ExegeteError(
            f"can't listen on {host}, port {port} ({said.lower()}): choose another with --port"
        ) from None
    except OverflowError:
        listening.close()
        raise UsageError(f"a port is a number up to 65535, not {port}") from None
    return listening


def door_of(host: str, port: int) -> Door:
    """The addresses under which a page may reach us."""
    if loopback(host):
        return Door(port)
    names = frozenset({_shown(host), "localhost", LOOPBACK, socket.gethostname()})
    return Door(port, names, any_number=host in ("0.0.0.0", "::"))


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _seen() -> bool:
    """Whether a browser would have a screen."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _config(app: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=TimedHeaders,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=1,
    )


async def _served(app: Guard, listening: socket.socket) -> None:
    await uvicorn.Server(_config(app)).serve(sockets=[listening])
