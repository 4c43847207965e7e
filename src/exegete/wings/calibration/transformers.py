"""Transformers of known truth (`exegete.models.truths.transformers`), audited with all readings of their attention."""

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import torch

from exegete.plugins import Audit, Readings, Study, build_wired, choose_texts, judge, load_criteria, quiet
from exegete.wings.calibration.count import EXCLUDED_BY
from exegete.wings.calibration.draws import ask_growing, mediation_of, subject_of
from exegete.wings.calibration.truth import Passes, Population, population

READINGS = Readings(texts=60, choosing=40)
DECIDES, ALSO = "mediation", "readings"
WRONG = {  # by truth: what an audit must not say
    "planted": EXCLUDED_BY["strong"],
    "planted below": ("yes", "yes by size"),
    "copied at the readout": ("yes", "yes by size", "yes as"),
    "copied in one head": ("yes", "yes by size", "yes as"),
    "copied below": ("yes", "yes by size", "yes as"),
    "nothing read": EXCLUDED_BY["unread"],
    "flat copy": EXCLUDED_BY["flat"],
    "flat copy beside sinks": EXCLUDED_BY["flat"],
    "flat copy beside an idle word": EXCLUDED_BY["flat"],
    "planted beside an idle word": EXCLUDED_BY["strong"],
    "partly planted": ("no",),  # its order is drawn: by seed it is partly or strongly that of effects
}


def grade_transformer(name: str, seed: int = 0, texts: int = 40, draws: int = 8) -> Population:
    """What the attention of a readout is worth, by passes of its own, over texts that no audit judges by."""
    truth = build_wired(name, seed)
    rows = [truth.model.reader.rows(text.words) for text in truth.task.split("dev")[:texts]]
    return population(Passes(truth.model), rows, ("wired", name, seed), draws)


@torch.no_grad()
def audit_transformer(name: str, seed: int = 0) -> Audit:
    """What is said of one of them, asked as models of Hugging Face are, and with all readings of 60 texts."""
    truth, texts = build_wired(name, seed), READINGS.texts
    mediation, test = mediation_of("hf"), truth.task.split("test")
    some = subject_of(truth.model, truth.task, tuple(choose_texts(test, texts)))
    with tempfile.TemporaryDirectory() as folder:
        with quiet():  # an audit says how a model may be trained again, and looks at its files
            truth.base.save_pretrained(folder)
            truth.tokenizer.save_pretrained(folder)
        said: dict[str, Any] = {"task": "texts", "model": f"hf:{Path(folder)}", "split": "test"}
        columns = {key: pl.lit(value) for key, value in said.items()} | {"seed": pl.lit(seed, pl.Int64)}
        own = {"draws": mediation.draws, "words": mediation.words, "methods": list(mediation.methods), "choose_on": ""}
        entries = ({"name": DECIDES, **own}, {"name": ALSO, "texts": texts})
        study = Study(name="wired", tasks=(said["task"],), models=(said["model"],), experiments=entries)
        rows, _ = ask_growing(truth.model, truth.task, mediation, study, load_criteria())
        both = {DECIDES: rows, ALSO: READINGS.rows(some).with_columns(**columns)}
        return judge(both, study, load_criteria(), frame=pl.DataFrame())
