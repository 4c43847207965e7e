"""Work: a cell in its study and run, and who is told how far it is."""

from pathlib import Path
from typing import NamedTuple

from exegete.base.progress import Progress, silent
from exegete.runs.study import Cell, Study


class Work(NamedTuple):
    """A cell in its study and run, and who is told how far it is."""

    run: Path
    study: Study
    cell: Cell
    code: str  # of what is about to run, taken before anything ran
    progress: Progress = silent
    part: str = ""  # the experiment or the companion that is at work, if one is
    split: str = ""  # the only split that is asked about, if one is

    def tell(self, label: str, done: int, total: int) -> None:
        """Report on a part of this cell's work."""
        self.progress(" · ".join(filter(None, [str(self.cell), self.split or self.part, label])), done, total)
