"""Ray engine: the same pieces on a Ray cluster, or on a Ray of this machine; the numbers are the local engine's.

A hand is an actor with one CPU and one thread (`ray_worker`), which keeps what it has loaded. It has a second piece
waiting while there are more pieces than hands, so that none is idle for want of a message; towards the end pieces are
handed out one by one, so that none waits behind another. Ray retries nothing: what a worker's death means is for the
contract to say (`contract`).

A hand that died was at its first piece, which is done again, last; one that waited behind it is not to blame, and is
done next. A new hand takes its place when the cluster has room for it, on another node if that one is lost.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from exegete.plugins import (
    CPU,
    RETRIES,
    ExegeteError,
    Item,
    Job,
    JobResult,
    Progress,
    SetAsideError,
    Speaking,
    halve,
    in_use,
    silent,
)
from exegete.wings.cluster.nodes import connect, environment, library, look_round
from exegete.wings.cluster.worker import Board, Hand, PieceOutcome

LISTENING = 0.3  # seconds between two looks at the board
NOBODY = 180.0  # seconds without any hand until it is given up: a cluster may have to start a node first
MEMORY = "out of memory"
BROKEN = 3  # hands that can't start, one after the other, until it is given up


@dataclass
class _Handle:
    """A hand as the engine knows it: the answer that says it has begun, and the pieces that it has, in order."""

    actor: Any
    begun: Any
    is_ready: bool = False
    pieces: deque[tuple[Any, int]] = field(default_factory=deque)  # the answer to come, the piece's place

    @property
    def next_answer(self) -> Any:
        """What it will answer first."""
        return self.pieces[0][0] if self.is_ready else self.begun


class RayEngine:
    """Hands on a cluster that stay warm from one map to the next."""

    def __init__(self, workers: int | None = None, address: str = "") -> None:
        self._wanted, self._address = workers, address
        self._leaves = self._connected = self._looked = False
        self._board: Any = None
        self._hands: list[_Handle] = []
        library()

    @property
    def workers(self) -> int:
        """As many as asked for, or one per CPU of the cluster; per GPU, where models are there."""
        self._connect()
        each = "CPU" if in_use().type == CPU else "GPU"
        return self._wanted or max(1, int(library().cluster_resources().get(each, 0)))

    def map(
        self, job: Job[Item, JobResult], items: Sequence[Item], progress: Progress = silent
    ) -> Iterator[tuple[Item, JobResult]]:
        """Do the job for every item; results as they come."""
        if not items:
            return
        if not self._looked:
            self.reach(None, ())
        shift = _Shift(self, job, items, progress)
        try:
            for place, outcome in shift.outcomes():
                yield shift.items[place], outcome.result()
        finally:
            self._dismiss([hand for hand in self._hands if hand.pieces])  # somebody stopped listening
        if shift.aside:
            raise SetAsideError([items[place] for place in shift.aside], len(items))

    def warm(self, job: Job[Item, None], item: Item) -> None:
        """Let every hand start and prepare itself by a job."""
        self.hire(self.workers)
        for hand in self._hands:
            hand.actor.work.remote(job, item)

    def reach(self, folder: Path | None, files: Sequence[Path]) -> None:
        """Refuse other versions, and a run folder or files that some node can't see."""
        self._connect()
        look_round(folder, files)
        self._looked = True

    def hire(self, wanted: int) -> None:
        """Have so many hands, or be about to."""
        while len(self._hands) < wanted:
            kind = library().remote(num_cpus=1, num_gpus=self.gpus, max_restarts=0, max_task_retries=0)(Hand)
            actor = kind.options(runtime_env=environment()).remote(self._told(), str(Path.cwd()))
            self._hands.append(_Handle(actor, actor.ready.remote()))

    @property
    def gpus(self) -> float:
        """What a hand has of a GPU: nothing on the CPU; one, or a share where there are more hands than GPUs."""
        if in_use().type == CPU:
            return 0
        count = library().cluster_resources().get("GPU", 0)
        if not count:
            raise ExegeteError("the cluster has no GPU: start nodes with `ray start --num-gpus`, or use --device cpu")
        return float(min(1.0, count / self.workers))

    def hear(self, progress: Progress) -> None:
        """Pass on what hands wrote on the board; one that is lost with its node is made anew."""
        ray = library()
        try:
            said = ray.get(self._told().take.remote(), timeout=5)
        except ray.exceptions.RayError:  # how far work is, is not worth stopping it
            self._board = None
            return
        for label, (done, total) in said.items():
            progress(label, done, total)

    def replace(self, hand: _Handle) -> None:
        """Let one go that is lost, and have another."""
        count = len(self._hands)
        self._dismiss([hand])
        self.hire(count)

    @property
    def hands(self) -> Sequence[_Handle]:
        """Those who are there, or about to be."""
        return self._hands

    def _told(self) -> Any:
        """The board, on the node where the command was given."""
        if self._board is None:
            ray = library()
            here = ray.get_runtime_context().get_node_id()
            at = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(here, soft=True)
            self._board = ray.remote(num_cpus=0)(Board).options(scheduling_strategy=at).remote()
        return self._board

    def _connect(self) -> None:
        if not self._connected:
            self._leaves = connect(self._address, self._wanted)
            self._connected = True

    def _dismiss(self, hands: Sequence[_Handle]) -> None:
        for hand in hands:
            library().kill(hand.actor)
            self._hands.remove(hand)

    def close(self) -> None:
        """Let the hands go, and the cluster."""
        if self._connected and library().is_initialized():
            self._dismiss(list(self._hands))
            if self._board is not None:
                library().kill(self._board)
            if self._leaves:
                library().shutdown()
        self._hands, self._board, self._connected, self._looked = [], None, False, False

    def __enter__(self) -> "RayEngine":
        self._connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Shift:
    """The pieces of one map: who has which, how often each was lost, and which were set aside."""

    def __init__(self, engine: RayEngine, job: Job[Any, Any], items: Sequence[Any], progress: Progress) -> None:
        self.engine, self.items, self.progress = engine, list(items), progress
        self.aside: list[int] = []
        self._job = library().put(job)
        self._waiting = deque(range(len(items)))
        self._lost: Counter[int] = Counter()
        self._broken, self._alive = 0, time.monotonic()

    def outcomes(self) -> Iterator[tuple[int, PieceOutcome]]:
        """What comes of every piece, as it comes."""
        ray, heard = library(), time.monotonic()
        while self._waiting or any(hand.pieces for hand in self.engine.hands):
            self.engine.hire(min(self.engine.workers, len(self._waiting)))
            self._hand_out()
            asked = {hand.next_answer: hand for hand in self.engine.hands if hand.pieces or not hand.is_ready}
            answered, _ = ray.wait(list(asked), timeout=LISTENING)
            for answer in answered:
                yield from self._answered(asked[answer], answer)
            if time.monotonic() - heard > LISTENING:
                self.engine.hear(self.progress)
                heard = time.monotonic()
            self._somebody_is_there()
        self.engine.hear(self.progress)

    def _hand_out(self) -> None:
        """A piece to everyone who has none; a second one while there are more than enough."""
        ready = [hand for hand in self.engine.hands if hand.is_ready]
        for most in (1, 2):
            for hand in ready:
                enough = most == 1 or len(self._waiting) > len(ready)
                if self._waiting and enough and len(hand.pieces) < most:
                    place = self._waiting.popleft()
                    hand.pieces.append((hand.actor.work.remote(self._job, self.items[place]), place))

    def _answered(self, hand: _Handle, answer: Any) -> Iterator[tuple[int, PieceOutcome]]:
        ray = library()
        try:
            found = ray.get(answer)
        except ray.exceptions.RayTaskError as error:  # before our code began: the job can't be read there
            raise error.as_instanceof_cause() from None
        except ray.exceptions.RayError as error:
            self._gone(hand, error)
            return
        if not hand.is_ready:
            hand.is_ready, self._broken = True, 0
            return
        _, place = hand.pieces.popleft()
        yield place, found

    def _gone(self, hand: _Handle, error: Exception) -> None:
        """A hand is lost: its first piece is done again last, what waited behind it next."""
        places = [place for _, place in hand.pieces]
        if not hand.is_ready:
            self._broken += 1
            if self._broken >= BROKEN:
                raise ExegeteError(f"workers can't start on the cluster: {_said(error)}")
        if places:
            self._waiting.extendleft(reversed(places[1:]))
            then = self._again(places[0], _said(error) == MEMORY)
            if isinstance(self.progress, Speaking):
                self.progress.say(f"a worker was lost ({_said(error)}); its piece is {then}: {self.items[places[0]]}")
        self.engine.replace(hand)

    def _again(self, place: int, by_memory: bool) -> str:
        """Put a piece that was lost where it belongs, and say so: memory would kill it again as it is."""
        self._lost[place] += 1
        smaller = halve(self.items[place])
        if not by_memory and self._lost[place] <= RETRIES:
            self._waiting.append(place)
            return "done again"
        if smaller is None:
            self.aside.append(place)
            return "set aside"
        self.items[place] = smaller
        self._waiting.append(place)
        return "done again in halves"

    def _somebody_is_there(self) -> None:
        """Nobody waits for ever for a cluster that has no room."""
        if any(hand.is_ready for hand in self.engine.hands):
            self._alive = time.monotonic()
        elif time.monotonic() - self._alive > NOBODY:
            raise ExegeteError(
                f"the cluster had no free CPU for {NOBODY:.0f} s: look at `ray status`; the same command goes on where "
                "it was"
            )


def _said(error: Exception) -> str:
    """The gist of what Ray says of a death. Of every process that died it says that memory may have been the cause."""
    if isinstance(error, library().exceptions.OutOfMemoryError):
        return MEMORY
    text = str(error).lower()
    return "its node died" if "node" in text and "process has died" not in text else type(error).__name__
