"""SNLI: does a premise entail a hypothesis, contradict it, or neither? (Bowman et al. 2015)"""

from functools import partial

from exegete.base.errors import ExegeteError
from exegete.base.names import Spec
from exegete.tasks import folder
from exegete.tasks.example import Task
from exegete.tasks.hub import HubTask
from exegete.tasks.prepare import prepare
from exegete.tasks.records import record
from exegete.tasks.settings import PairSource

NAME, HUB = "snli", "stanfordnlp/snli"
OFFICIAL = 549_367  # training pairs whose annotators agree


class SnliTask(PairSource):
    """The premise is the passage, the hypothesis the question."""

    def task(self, spec: Spec) -> Task:
        """Read it from EXEGETE_DATA, else from the hub."""
        if folder.has(NAME):
            found = folder.read_folder(NAME, make=partial(record, text="premise", question="hypothesis"))
            rows = {split: list(each) for split, each in found.items()}
            return prepare(str(spec), rows, self, f"{folder.VARIABLE}/{NAME}", _notes(len(rows["train"])))
        try:
            online, notes = HubTask(text="premise", question="hypothesis").read(HUB)
        except ExegeteError as error:
            raise ExegeteError(
                f"task '{NAME}' is not here: set {folder.VARIABLE} to a folder that holds {NAME}/train.jsonl.gz, "
                'dev.jsonl.gz and test.jsonl.gz (a line is {"premise": …, "hypothesis": …, "label": …}), or let the '
                f"hub give it: {error}"
            ) from None
        return prepare(str(spec), online, self, f"hf:{HUB}", notes)


def _notes(train: int) -> tuple[str, ...]:
    """A part of the training data is a harder task than the whole: say so."""
    sample = f"The training data are a sample: {train:,} of the {OFFICIAL:,} pairs of SNLI."
    return (sample,) if train < OFFICIAL else ()
