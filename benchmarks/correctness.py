"""What every method promises, checked on real texts: all methods × {bilstm, average, cnn} × {rotten_tomatoes, sst}.

Batch = single, completeness, conservation, and captum's numbers where captum has the method. Not a race: a table,
printed and kept as CSV in the folder that is given (default runs/correctness). `sst` needs EXEGETE_DATA; without it, it
is left out.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from common import FEW, SMALL
from exegete.base.errors import ExegeteError
from exegete.importance.baselines import baseline
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Importance, refusal
from exegete.importance.erasure import erased
from exegete.importance.kernel_shap import KernelShap
from exegete.importance.lime import Lime
from exegete.importance.sharing import sharing
from exegete.models.contract import Predictor
from exegete.runs.training import train_model
from exegete.tasks.batching import Batch
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example
from exegete.tasks.selection import choose_texts

METHODS = {name: name for name in computable()} | {
    "gradient": "gradient:norm=l2", "leave_one_out": "leave_one_out:of=logit", "lime": "lime:samples=200",
    "kernel_shap": "kernel_shap:samples=200",
}  # fmt: skip
MODELS = tuple(f"{name}:vectors=glove-50" for name in (("average",) if SMALL else ("bilstm", "average", "cnn")))
TASKS = (FEW,) if SMALL else ("rotten_tomatoes", "sst")
TEXTS, SAMPLED = (4, 1) if SMALL else (200, 5)  # texts for all checks; short texts for the methods that draw samples


def scores_of(model: Predictor, method: Importance, examples: Sequence[Example], size: int) -> list[Tensor]:
    """Scores of the words of every text, `size` texts a batch, padded as they come."""
    found: list[Tensor] = []
    for start in range(0, len(examples), size):
        batch = model.collate(examples[start : start + size])
        with sharing():
            values = method(model, batch).values
        found += [row[words].double() for row, words in zip(values, batch.words, strict=True)]
    return found


def error_of(model: Predictor, method: Importance, examples: Sequence[Example]) -> float | None:
    errors = [method(model, model.collate(examples[start : start + 64])).error for start in range(0, len(examples), 64)]
    return None if errors[0] is None else max(float(e.max()) for e in errors if e is not None)


def apart(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    return max(float((x - y).abs().max()) for x, y in zip(a, b, strict=True))


class Logit(torch.nn.Module):
    """A model as captum wants it: embeddings to logits, for the texts of one batch."""

    def __init__(self, model: Predictor, batch: Batch) -> None:
        super().__init__()
        self.model, self.batch = model, batch

    def forward(self, embedded: Tensor) -> Tensor:
        times = len(embedded) // len(self.batch.ids)  # captum stacks copies of a batch
        batch = self.batch.rows(torch.arange(len(self.batch.ids)).repeat(times))
        return self.model.trace(batch, embedded=embedded).logits


Oracle = Callable[[Logit, Tensor, Tensor], Tensor]  # embeddings and classes to a score per token


def _gradient(f: Logit, x: Tensor, c: Tensor) -> Tensor:
    from captum.attr import Saliency

    return Saliency(f).attribute(x, target=c, abs=False).square().sum(-1).sqrt()  # type: ignore[no-any-return]


def _gradient_x_input(f: Logit, x: Tensor, c: Tensor) -> Tensor:
    from captum.attr import InputXGradient

    return InputXGradient(f).attribute(x, target=c).sum(-1)  # type: ignore[no-any-return]


def _integrated_gradients(f: Logit, x: Tensor, c: Tensor) -> Tensor:
    from captum.attr import IntegratedGradients

    start = baseline(f.model, f.batch, "zero")  # symbols around a text keep their embeddings
    how = {"n_steps": 64, "method": "gausslegendre", "internal_batch_size": 256}
    return IntegratedGradients(f).attribute(x, start, target=c, **how).sum(-1)  # type: ignore[no-any-return]


def _occlusion(f: Logit, x: Tensor, c: Tensor) -> Tensor:
    from captum.attr import FeatureAblation

    words = torch.arange(x.shape[1])[None, :, None].expand(1, -1, x.shape[2])
    return FeatureAblation(f).attribute(x, target=c, feature_mask=words)[..., 0]  # type: ignore[no-any-return]


ORACLES: dict[str, tuple[str, Oracle]] = {
    "gradient": ("gradient:norm=l2", _gradient),
    "gradient_x_input": ("gradient_x_input", _gradient_x_input),
    "integrated_gradients": ("integrated_gradients:steps=64,bound=0", _integrated_gradients),
    "occlusion": ("occlusion", _occlusion),
}


def from_captum(model: Predictor, name: str, examples: Sequence[Example]) -> float:
    """The largest difference from captum with the same settings."""
    written, oracle = ORACLES[name]
    worst = 0.0
    for e in examples:
        batch = model.collate([e])
        ours = IMPORTANCES.make(written)(model, batch)
        theirs = oracle(Logit(model, batch), model.embed(batch).detach(), ours.target.label).detach()
        worst = max(worst, float((ours.values - theirs).abs()[batch.words].max()))
    return worst


def _captum_samples(model: Predictor, name: str, e: Example, seed: int) -> Tensor:
    """captum's LIME or KernelSHAP on which words of a text stay, 2,000 draws."""
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import KernelShap as TheirShap
    from captum.attr import LimeBase

    batch = model.collate([e])
    label = model.trace(batch).logits.argmax(-1)

    def f(kept: Tensor) -> Tensor:
        gone = ~kept.bool()
        return erased(model, batch, torch.zeros(len(kept), dtype=torch.int64), gone, "delete")[:, label[0]]

    torch.manual_seed(seed)
    whole = torch.ones(1, len(e))
    if name == "kernel_shap":
        return TheirShap(f).attribute(whole, n_samples=2000, perturbations_per_eval=256)[0].double()  # type: ignore[no-any-return]
    lime = Lime()

    def drawn(_: Tensor, **__: Any) -> Tensor:
        removed = int(torch.randint(1, len(e) + 1, ()))
        kept = torch.ones(1, len(e))
        kept[0, torch.randperm(len(e))[:removed]] = 0
        return kept

    def near(_: Tensor, z: Tensor, __: Tensor, **___: Any) -> float:
        return float(lime._kernel(z.double().mean()))

    def same(z: Tensor, _: Tensor, **__: Any) -> Tensor:
        return z

    made = LimeBase(f, SkLearnRidge(alpha=lime.alpha), near, drawn, True, same, None)
    return made.attribute(whole, n_samples=2000)[0].double()  # type: ignore[no-any-return]


def within_sampling_error(model: Predictor, name: str, examples: Sequence[Example]) -> tuple[float, float]:
    """Mean distance of ours from captum's, and of captum's own two seeds from each other."""
    method: Importance = KernelShap(samples=2000) if name == "kernel_shap" else Lime(samples=2000)
    between, among = [], []
    for e in examples:
        ours = scores_of(model, method, [e], 1)[0]
        theirs = [_captum_samples(model, name, e, seed) for seed in (0, 1)]
        between.append(float((ours - theirs[0]).abs().mean()))
        among.append(float((theirs[0] - theirs[1]).abs().mean()))
    return sum(between) / len(between), sum(among) / len(among)


def checked(task: str, spec: str, folder: Path) -> list[dict[str, Any]]:
    """All methods on one model."""
    place = folder / "models" / f"{task}-{spec.partition(':')[0]}"
    checkpoint, _ = train_model(task, spec, 0, "epochs=3,metric=accuracy", place)
    model, every = checkpoint.classifier, load_task(task).split("test")
    examples = choose_texts(every, TEXTS)
    short = [e for e in every if 6 <= len(e) <= 12][:SAMPLED]
    rows = []
    for name, written in METHODS.items():
        method: Importance = IMPORTANCES.make(written)
        row: dict[str, Any] = {"task": task, "model": spec.partition(":")[0], "method": name, "n": len(examples)}
        reason = refusal(method, model)
        if reason is None:
            row["batch_single"] = apart(scores_of(model, method, examples, 64), scores_of(model, method, examples, 1))
            row["max_error"] = error_of(model, method, examples)
            row["from_captum"] = from_captum(model, name, examples) if name in ORACLES else None
            if name in ("lime", "kernel_shap"):
                row["from_captum"], row["captum_from_itself"] = within_sampling_error(model, name, short)
        rows.append(row | {"refused": reason})
        print(" ".join(f"{key}={value:.1e}" if isinstance(value, float) else f"{value}" for key, value in row.items()))
    return rows


def failures(table: pl.DataFrame) -> pl.DataFrame:
    """Lines that break a promise."""
    bounds = {"integrated_gradients": 0.01, "lrp": 1e-4, "kernel_shap": 1e-6, "deeplift": 1e-3}
    bound = pl.col("method").replace_strict(bounds, default=float("inf"))
    sampled = pl.col("method").is_in(["lime", "kernel_shap"])
    return table.filter(
        (pl.col("batch_single") > 1e-5)
        | (pl.col("max_error") > bound)
        | (~sampled & (pl.col("from_captum") > 1e-4))
        | (sampled & pl.lit(not SMALL) & (pl.col("from_captum") > 1.5 * pl.col("captum_from_itself") + 1e-9))
    )


def keep(table: pl.DataFrame, broken: pl.DataFrame, path: Path) -> None:
    """Write the table, and end with an error if some of its lines are broken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_csv(path)
    print(f"{table.height} lines, {broken.height} broken; table in {path}")
    if broken.height:
        print(broken)
        sys.exit(1)


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="captum")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "correctness"
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        try:
            load_task(task)
        except ExegeteError as error:
            print(f"{task} is left out: {error}")
            continue
        for spec in MODELS:
            rows += checked(task, spec, folder)
    table = pl.DataFrame(rows, infer_schema_length=None)
    keep(table, failures(table), folder / "correctness.csv")


if __name__ == "__main__":
    main()
