"""Terminal: progress bars on standard error while work goes on."""

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

SEPARATOR = " · "


class ProgressBars:
    """One bar per piece of work, which is named by its label but for the last part: what it does now."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[now]}"),
            TimeElapsedColumn(),
        )
        self._bars = Bars(*columns, console=Console(stderr=True), transient=True, disable=quiet)
        self._ids: dict[str, TaskID] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        """Show how far a piece of work is."""
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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
