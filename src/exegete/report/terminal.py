"""Terminal: progress on standard error while work goes on: bars, or a line now and then where nobody sees bars."""

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from exegete.base.heartbeat import Heartbeat

SEPARATOR = " · "


class ProgressBars:
    """One bar per piece of work, which is named by its label but for the last part: what it does now.

    Without a terminal, a line every half minute.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[now]}", style="dim", markup=False),
            TimeElapsedColumn(),
        )
        console = Console(stderr=True)
        by_line = not (quiet or console.is_terminal or console.is_jupyter)
        self._beat = Heartbeat() if by_line else None
        self._bars = Bars(*columns, console=console, transient=True, disable=quiet or by_line)
        self._ids: dict[str, TaskID] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        """Show how far a piece of work is."""
        if self._beat is not None:
            self._beat(label, done, total)
        piece, _, now = label.rpartition(SEPARATOR)
        if piece not in self._ids:
            self._ids[piece] = self._bars.add_task(piece or "working", total=total, now=now)
        self._bars.update(self._ids[piece], completed=done, total=total, now=now)

    def say(self, sentence: str) -> None:
        """A line above the bars, which stays when they go."""
        if not self.quiet:
            self._bars.console.print(f"[yellow]note:[/] {escape(sentence)}", soft_wrap=True, highlight=False)

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        if self._beat is not None:
            self._beat.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beat is not None:
            self._beat.__exit__(kind, error, trace)
        self._bars.stop()
