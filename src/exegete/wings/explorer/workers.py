"""Workers: a model of the command line and its workers; one for what must be quick, one for what takes long.

A drag never waits for a search: they are asked of different processes. What was found is kept by content, so that the
same question is answered once. Nothing here imports torch.
"""

import asyncio
import json
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any

from exegete.plugins import ExegeteError, GivenUp, Reply, UsageError, Warm, unknown
from exegete.wings.explorer.data import Data, run_of
from exegete.wings.explorer.messages import Explain, Message, StartAudit
from exegete.wings.explorer.queue import WAITING, Busy
from exegete.wings.explorer.replies import OfferedMethod, ServedModel

KEEP, AUDIT = "exegete.wings.explorer.worker_answers:prepare_model", "exegete.wings.explorer.audits:prepare_audit"
KEPT, BYTES = 512, 32 << 20  # answers, and how long they may be together
WorkerMessage = tuple[str, Mapping[str, Any]]  # "told" or "found", and what
DEFAULT = "the default audit’s model"
NEWER = "a newer question of the same page took the place of this one: ask again"


class Served:
    """One model, as the server sees it."""

    def __init__(self, number: int, source: str | None) -> None:
        run = run_of(source)
        self.data = None if run is None else Data(run)
        self.about = ServedModel(
            model=number, name=source or DEFAULT, state="loading", said="starting", source=source, run=run is not None
        )
        self._kept: OrderedDict[str, Reply] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._newest: dict[tuple[str, str], tuple[Warm, int]] = {}  # by who asks, and what
        self._slow: Warm | None = None
        self._auditor: Warm | None = None
        self._quick = Warm(KEEP, source, told=self._told)
        self._quick.made.add_done_callback(self._made)

    async def ask(self, name: str, message: Message, keep: bool = True, page: str | None = None) -> Reply:
        """An answer of the quick worker, or the one that was given before. Whoever leaves stops it."""
        key = self._key(name, message)
        if key in self._kept:
            return self._kept[key]
        async with aclosing(self._heard(self._room(self._quick), name, message, page)) as parts:
            *_, (_, answer) = [part async for part in parts]
        return self._keep(key, dict(answer)) if keep else dict(answer)

    async def follow(self, name: str, message: Message, page: str | None = None) -> AsyncGenerator[WorkerMessage, None]:
        """A long piece of work: ("told", …) while it goes on, then ("found", …). Whoever leaves stops it.

        A page that asks the same question anew, of another text say, has no use for what it asked before.
        """
        key = self._key(name, message)
        if key in self._kept:
            yield "found", self._kept[key]
            return
        async with aclosing(self._heard(self._room(self._slow or self._quick), name, message, page)) as parts:
            async for kind, said in parts:
                yield kind, self._keep(key, dict(said)) if kind == "found" else said

    async def audit(self, asked: StartAudit) -> AsyncGenerator[WorkerMessage, None]:
        """The audit of this model, by a worker of its own; then it is a run, with texts and a scorecard."""
        self.check()
        if self.data is not None:
            raise UsageError("this is a run, and has its scorecard: audit it anew with `exegete audit`")
        if self._auditor is not None:
            raise Busy("this model is being audited already: wait for its end, or stop it where it was started")
        self._auditor = Warm(AUDIT, self.about.source)
        try:
            async with aclosing(self._heard(self._auditor, "audit", asked)) as parts:
                async for kind, said in parts:
                    if kind == "told":
                        yield kind, said
                        continue
                    self.data = Data(Path(said["folder"]))
                    self.about = self.about.model_copy(update={"run": True})
                    yield "found", {"run": self.about.model}
        finally:
            self._auditor.close()
            self._auditor = None

    def check_offered(self, asked: Explain) -> None:
        """Refuse methods, and settings of methods, that the page doesn't offer: some read files, or take for ever."""
        offered = [method.name for method in self.about.methods]
        for method in asked.methods or ():
            if method not in offered:
                raise unknown("method", method, offered)

    def check(self) -> None:
        """Refuse questions before there is a model to ask."""
        if self.about.state == "failed":
            raise ExegeteError(self.about.said)
        if self.about.state == "loading":
            raise Busy("the model is still being made ready: ask again in a moment")

    def close(self) -> None:
        """Let the workers go."""
        for worker in (self._quick, self._slow, self._auditor):
            if worker is not None:
                worker.close()
        if self.data is not None:
            self.data.close()

    async def _heard(
        self, worker: Warm, name: str, message: Message, page: str | None = None
    ) -> AsyncGenerator[WorkerMessage, None]:
        """What a worker says of a question until it is answered; whoever leaves gives it up."""
        loop, heard = asyncio.get_running_loop(), asyncio.Queue[Mapping[str, Any] | None]()

        def hear(said: Mapping[str, Any] | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(heard.put_nowait, said)

        number, found = worker.ask(name, message.model_dump(), hear)
        found.add_done_callback(lambda _: hear(None))
        self._replace(page, name, (worker, number))
        try:
            while (said := await heard.get()) is not None:
                yield "told", said
            answer = await asyncio.wrap_future(found)
            yield "found", answer
        except GivenUp:
            raise ExegeteError(NEWER) from None
        finally:
            worker.give_up(number)
            if page is not None and self._newest.get((page, name)) == (worker, number):
                del self._newest[page, name]

    def _replace(self, page: str | None, name: str, question: tuple[Warm, int]) -> None:
        """Stop what a page asked before by this name. Pages don't stop each other, nor does who says no page."""
        if page is None:
            return
        if (before := self._newest.get((page, name))) is not None:
            worker, number = before
            worker.give_up(number)
        self._newest[page, name] = question

    def _room(self, worker: Warm) -> Warm:
        self.check()
        if worker.waiting >= WAITING:
            raise Busy(f"{WAITING} questions are waiting for this model already: ask again in a moment")
        return worker

    def _key(self, name: str, message: Message) -> str:
        return sha256(json.dumps([name, message.model_dump()], sort_keys=True).encode()).hexdigest()

    def _keep(self, key: str, found: Reply) -> Reply:
        self._kept[key], self._sizes[key] = found, len(json.dumps(found))
        while len(self._kept) > KEPT or sum(self._sizes.values()) > BYTES:
            oldest, _ = self._kept.popitem(last=False)
            del self._sizes[oldest]
        return found

    def _told(self, said: Mapping[str, Any]) -> None:
        self.about = self.about.model_copy(update=dict(said))

    def _made(self, made: "Future[Reply]") -> None:
        """The model is there, or a sentence why not; then the second worker loads what the first may have trained."""
        error = made.exception()
        if error is not None:
            self._fail(error)
            return
        self._quick.ask("about", {})[1].add_done_callback(self._ready)

    def _ready(self, found: "Future[Reply]") -> None:
        if (error := found.exception()) is not None:
            self._fail(error)
            return
        said = found.result() | {"model": self.about.model, "run": self.about.run}
        self.about = ServedModel.model_validate(said)
        self._slow = Warm(KEEP, self.about.source)
        self._measure([method.name for method in self.about.methods if not method.cheap])

    def _measure(self, names: Sequence[str]) -> None:
        """How long dear methods take here, one after another, so that a person's question waits for one at most."""
        if not names or self._slow is None:
            return

        def measured(cost: "Future[Reply]") -> None:
            if cost.exception() is None:  # one that fails has no number, and says why when it is asked for
                self._cost(names[0], cost.result()["milliseconds"])
                self._measure(names[1:])

        self._slow.ask("cost", {"method": names[0]})[1].add_done_callback(measured)

    def _cost(self, name: str, measured: float) -> None:

        def timed(method: OfferedMethod) -> OfferedMethod:
            return method.model_copy(update={"milliseconds": measured}) if method.name == name else method

        self.about = self.about.model_copy(update={"methods": [timed(method) for method in self.about.methods]})

    def _fail(self, error: BaseException) -> None:
        said = str(error) if isinstance(error, ExegeteError) else "this model can't be read: see the terminal"
        if not isinstance(error, ExegeteError):
            print(error, file=sys.stderr)
        self.about = self.about.model_copy(update={"state": "failed", "said": said})
