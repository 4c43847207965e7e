"""Transformers whose truth is known (`exegete.models.truths.wired`), audited with all readings of their attention."""

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import torch

from exegete.audits.criteria import load_criteria
from exegete.audits.judge import judge
from exegete.audits.scorecard import Audit
from exegete.calibration.draws import mediation_of, subject_of
from exegete.experiments.readings.experiment import Readings
from exegete.models.huggingface.load import quiet
from exegete.models.truths.wired import wired
from exegete.runs.study import Study

READINGS = Readings(texts=60, choosing=40)
DECIDES, ALSO = "mediation", "readings"
WRONG = {  # by truth: what an audit must not say
    "planted": ("no",),
    "planted below": ("yes", "yes by size"),
    "copied at the readout": ("yes", "yes by size", "yes as"),
    "copied in one head": ("yes", "yes by size", "yes as"),
    "copied below": ("yes", "yes by size", "yes as"),
}


@torch.no_grad()
def audited(name: str, seed: int = 0) -> Audit:
    """What is said of one of them, asked as models of Hugging Face are, of 60 texts."""
    truth, texts = wired(name, seed), READINGS.texts
    mediation = mediation_of("hf")
    subject = subject_of(truth.model, truth.task, mediation)
    some = subject_of(truth.model, truth.task, READINGS)
    with tempfile.TemporaryDirectory() as folder:
        with quiet():  # an audit says how a model may be trained again, and looks at its files
            truth.base.save_pretrained(folder)
            truth.tokenizer.save_pretrained(folder)
        said: dict[str, Any] = {"task": "texts", "model": f"hf:{Path(folder)}", "split": "test"}
        columns = {key: pl.lit(value) for key, value in said.items()} | {"seed": pl.lit(seed, pl.Int64)}
        rows = {DECIDES: mediation.rows(subject), ALSO: READINGS.rows(some)}
        own = {"draws": mediation.draws, "words": mediation.words, "methods": list(mediation.methods), "choose_on": ""}
        asked = ({"name": DECIDES, **own}, {"name": ALSO, "texts": texts})
        study = Study(name="wired", tasks=(said["task"],), models=(said["model"],), experiments=asked)
        told = {key: frame.with_columns(**columns) for key, frame in rows.items()}
        return judge(told, study, load_criteria(), frame=pl.DataFrame())
