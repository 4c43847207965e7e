"""Warm: a worker process that keeps something heavy, a model say, and answers questions about it, one after another.

What it keeps is made in the worker by a function, named "module:function", which returns what answers:

    make(tell, *arguments) -> answer;    answer(name, arguments, tell) -> found

Questions and answers are JSON, so that nothing but text crosses: `tell(…)` passes on how far the work is. A question
that was given up stops there, or before the next pass of a model. The process that asks imports nothing of what
answers.
"""

import json
import os
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.pauses import call_at_pauses
from exegete.base.processes import Worker, Workers, settle

Reply = dict[str, Any]
Tell = Callable[[Mapping[str, Any]], None]
Answerer = Callable[[str, dict[str, Any], Tell], Reply]
MAKING = 0  # the number of the first question: what is kept
DIED = "the worker process died (out of memory?): ask again, it is started anew"


class GivenUp(Exception):  # noqa: N818
    """In a worker: nobody waits for this answer any more."""


class PendingQuestion:
    """A question on its way: its answer comes into `found`; `told` hears how far it is, in a thread of its own."""

    def __init__(self, told: Tell) -> None:
        self.found: Future[Reply] = Future()
        self.told = told
        self.found.set_running_or_notify_cancel()

    def hear(self, message: Mapping[str, Any]) -> bool:
        """Take in a message; whether it was the last."""
        if "told" in message:
            self.told(message["told"])
            return False
        if "found" in message:
            self.found.set_result(message["found"])
        elif "wrong" in message:
            kind = UsageError if message["usage"] else ExegeteError
            self.found.set_exception(kind(message["wrong"]))
        elif "defect" in message:
            self.found.set_exception(RuntimeError(message["defect"]))
        else:
            self.found.set_exception(GivenUp())
        return True


def _deaf(_: Mapping[str, Any]) -> None:
    """For those who don't want to know."""


class Warm:
    """One worker; it starts at once, and again with the next question if it died."""

    def __init__(self, make: str, *arguments: str | None, told: Tell = _deaf) -> None:
        self._make, self._arguments, self._told = make, arguments, told
        self._numbers, self._lock = count(MAKING + 1), threading.Lock()
        self._waiting: dict[int, PendingQuestion] = {}
        self._start()

    @property
    def made(self) -> "Future[Reply]":
        """Done when the thing is there; what it raises says why it isn't."""
        return self._made.found

    @property
    def waiting(self) -> int:
        """Questions that are not answered yet."""
        return len(self._waiting)

    def ask(self, name: str, arguments: Mapping[str, Any], told: Tell = _deaf) -> tuple[int, "Future[Reply]"]:
        """Ask: the question's number, and its answer to come."""
        with self._lock:
            if self._died:
                self._start()
            number, asked = next(self._numbers), PendingQuestion(told)
            self._waiting[number] = asked
            self._send({"number": number, "name": name, "arguments": arguments})
        return number, asked.found

    def give_up(self, number: int) -> None:
        """Stop a question, at its next `tell`, before the next pass of its model, or before it begins."""
        if number in self._waiting:
            self._send({"number": number, "give_up": True})

    def close(self) -> None:
        """Let the worker go, whatever it does."""
        self._process.terminate()
        self._process.join()
        self._connection.close()

    def _start(self) -> None:
        context = Workers()
        self._connection, theirs = context.Pipe()
        self._process: Worker = context.Process(
            target=_work, args=(theirs, self._make, self._arguments, dict(os.environ)), daemon=True
        )
        self._made, self._died = PendingQuestion(self._told), False
        self._waiting[MAKING] = self._made
        self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, args=(self._connection,), daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        """Hand every message to the question that it is about; at the end, nobody waits in vain."""
        try:
            while True:
                message = json.loads(connection.recv_bytes())
                asked = self._waiting[message["number"]]
                if asked.hear(message):
                    del self._waiting[message["number"]]
        except (EOFError, OSError):
            with self._lock:
                self._died, left = True, [self._waiting.pop(number) for number in list(self._waiting)]
            for asked in left:
                asked.found.set_exception(ExegeteError(DIED))

    def _send(self, message: Mapping[str, Any]) -> None:
        """What a dead worker doesn't read, `_listen` answers."""
        with suppress(OSError):
            _send(self._connection, message)


def _send(connection: Connection, message: Mapping[str, Any]) -> None:
    connection.send_bytes(json.dumps(message).encode())


def _work(connection: Connection, make: str, arguments: tuple[str | None, ...], environment: dict[str, str]) -> None:
    """A worker's life: make the thing, then answer. A thread reads, so that a question can be given up on the way."""
    settle(environment)
    questions: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    gone: set[int] = set()
    threading.Thread(target=_read, args=(connection, questions, gone), daemon=True).start()
    module, _, function = make.partition(":")
    kept: list[Answerer] = []

    def made(tell: Tell) -> Reply:
        kept.append(getattr(import_module(module), function)(tell, *arguments))
        return {}

    _answered(connection, MAKING, gone, made)
    while kept and (question := questions.get()) is not None:
        name, given = question["name"], question["arguments"]
        _answered(connection, question["number"], gone, lambda tell, n=name, g=given: kept[0](n, g, tell))  # type: ignore[misc]


def _read(connection: Connection, questions: "queue.SimpleQueue[dict[str, Any] | None]", gone: set[int]) -> None:
    """Questions in their order; those that were given up are remembered at once."""
    try:
        while True:
            message = json.loads(connection.recv_bytes())
            if message.get("give_up"):
                gone.add(message["number"])
            else:
                questions.put(message)
    except (EOFError, OSError):
        questions.put(None)


def _answered(connection: Connection, number: int, gone: set[int], work: Callable[[Tell], Reply]) -> None:
    """Do some work and send what came of it."""

    def check() -> None:
        if number in gone:
            raise GivenUp

    def tell(message: Mapping[str, Any]) -> None:
        check()
        _send(connection, {"number": number, "told": message})

    try:
        with call_at_pauses(check):
            check()
            said: Reply = {"found": work(tell)}
    except GivenUp:
        said = {"given_up": True}
    except ExegeteError as error:
        said = {"wrong": str(error), "usage": isinstance(error, UsageError)}
    except Exception:  # noqa: BLE001 - a defect of ours: the parent shows its traceback, and the worker lives on
        said = {"defect": traceback.format_exc()}
    gone.discard(number)
    _send(connection, {"number": number} | said)
