"""Memory: does what a study holds grow with its corpus, and how does its time?

    python benchmarks/memory.py results/memory          1,000, 10,000 and 100,000 made-up reviews, minutes of a core
    python benchmarks/memory.py results/memory --csv 2  also a csv of 2 GB, audited, in a temporary folder
    python benchmarks/memory.py --small                 a few texts: that nothing here has rotted

A trained `average` is asked about faithfulness (attention and random, one removal) on all reviews: predicted, scored,
removed, tabulated. Megabytes are the largest that the process ever held, seconds are CPU time. The bar: the peak of all
sizes is within 1.3 of the smallest's, and the csv is audited under 1.5 GB.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import altair as alt
import polars as pl

from exegete import __version__
from exegete.base.files import write_json, write_text
from exegete.report.theme import figure, inline, to_svg
from exegete.runs.tables import write_csv

SIZES, SMALL = (1_000, 10_000, 100_000), (50, 100)
BAR, AUDITED = 1.3, 1_500  # ratio; megabytes
PLAIN = [f"w{i}" for i in range(3000)]
TELLING = (("dull", "poor"), ("fine", "great"))
ASKED = {"name": "faithfulness", "methods": ["attention", "random"], "removals": ["zero"]}


def written(path: Path, texts: int, seed: int) -> Path:
    """A csv of made-up reviews of 10 to 50 words, one of which tells the class."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf8") as file:
        file.write("text,label\n")
        for i in range(texts):
            words = draw.choices(PLAIN, k=draw.randint(10, 50))
            words[draw.randrange(len(words))] = draw.choice(TELLING[i % 2])
            file.write(f"{' '.join(words)},{('bad', 'good')[i % 2]}\n")
    return path


def large(path: Path, size: int) -> Path:
    """A csv of so many bytes, of reviews of some 160 words."""
    draw = random.Random(0)
    blocks = [" ".join(draw.choices([f"w{i}" for i in range(30_000)], k=40)) for _ in range(2000)]
    with path.open("w", encoding="utf8") as file:
        file.write("text,label\n")
        done = number = 0
        while done < size:
            number += 1
            told = draw.choice(TELLING[number % 2])
            done += file.write(f"{' '.join(draw.choices(blocks, k=4))} {told} {number},{('bad', 'good')[number % 2]}\n")
    return path


def of_reviews(texts: int, folder: Path) -> dict[str, float]:
    """What a study of so many reviews takes, in this process."""
    from exegete.runs.engine.local import LocalEngine
    from exegete.runs.run import run_study
    from exegete.runs.study import Study, check_study

    train, dev, test = (
        written(folder / f"{name}.csv", n, seed)
        for seed, (name, n) in enumerate({"train": 400, "dev": 100, "test": texts}.items())
    )
    study = check_study(
        Study(
            name="memory",
            tasks=[f"file:{train}:dev={dev},test={test}"],
            models=["average:size=16"],
            training={"epochs": 2, "lr": 0.02},
            experiments=[ASKED],
        )
    )
    began = time.process_time()
    run_study(study, folder / "run", engine=LocalEngine(1))
    stages = [json.loads(path.read_text()) for path in (folder / "run" / "stages").glob("*/stage.json")]
    return {
        "texts": texts,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_tables": max(stage["peak_mb"] for stage in stages),
        "cpu_seconds": time.process_time() - began,
    }


def of_csv(size: int, folder: Path) -> dict[str, float]:
    """What the quick audit of a trained model on a csv of so many bytes takes, its workers included."""
    few = written(folder / "few.csv", 2_000, 0)
    door = [sys.executable, "-m", "exegete"]
    kept = str(folder / "model")
    training = ["train", "--task", f"file:{few}", "--model", "average:size=16", "--training", "epochs=2,lr=0.02"]
    subprocess.run([*door, *training, "--out", kept, "--quiet"], check=True)
    big = large(folder / "big.csv", size)
    audit = ["audit", "--task", f"file:{big}", "--model", kept, "--quick", "--workers", "1", "--quiet"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*door, *audit, "--out", str(folder / "audit")], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"bytes": big.stat().st_size, "megabytes": after.ru_maxrss / 1024, "cpu_seconds": seconds}


def _both(table: pl.DataFrame) -> pl.DataFrame:
    """Both measurements, one below the other, each with what it would be with no growth or in proportion."""
    first = table.row(0, named=True)
    in_proportion = first["cpu_seconds"] * pl.col("texts") / first["texts"]
    measured = {
        "peak megabytes": ("megabytes", pl.lit(first["megabytes"])),
        "CPU-seconds": ("cpu_seconds", in_proportion),
    }
    return pl.concat(
        table.select("texts", value=column, expected=expected, of=pl.lit(name))
        for name, (column, expected) in measured.items()
    )


@figure(_both, "nothing was measured")
def growth(table: pl.DataFrame) -> alt.FacetChart:
    """Peak memory and CPU time by the number of texts asked about. Dashed: no growth; growth in proportion."""
    base = alt.Chart(inline(table)).encode(x=alt.X("texts:Q", scale=alt.Scale(type="log"), title="texts"))
    value = alt.Y("value:Q", title=None, scale=alt.Scale(type="log"))
    drawn = alt.LayerChart(
        layer=[
            base.mark_line().encode(y=value),
            base.mark_point(filled=True, size=40, opacity=1).encode(y=value),
            base.mark_line(strokeDash=[4, 3]).encode(y="expected:Q"),
        ]
    )
    faceted: alt.FacetChart = drawn.properties(width=220, height=200).facet("of:N", title=None)
    independent: alt.FacetChart = faceted.resolve_scale(y="independent")
    return independent


def apart(what: str, number: int) -> dict[str, float]:
    """A measurement in a process of its own, in a folder that ends with it."""
    with TemporaryDirectory() as folder:
        environment = os.environ | {"EXEGETE_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, what, str(number), folder]
        said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    print("  ".join(f"{name} {value:,.0f}" for name, value in found.items()), flush=True)
    return found


def keep(folder: Path, table: pl.DataFrame, csv: dict[str, float] | None) -> None:
    """Table, figure, and how they came about."""
    write_csv(folder / "memory.csv", table)
    write_text(folder / "memory.svg", to_svg(growth(table)))
    facts = {"exegete": __version__, "command": " ".join(["python", "benchmarks/memory.py", *sys.argv[1:]]), "csv": csv}
    write_json(folder / "manifest.json", facts)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", nargs="?", type=Path)
    asked.add_argument("--small", action="store_true")
    asked.add_argument("--csv", type=float, default=0.0, metavar="GB")
    asked.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    wanted = asked.parse_args()
    table = pl.DataFrame([apart("reviews", texts) for texts in (SMALL if wanted.small else wanted.sizes)])
    ratio = table["megabytes"].max() / table["megabytes"][0]
    print(f"peak of the largest: {ratio:.2f} of the smallest's (bar {BAR})")
    csv = apart("csv", int(wanted.csv * 1e9)) if wanted.csv else None
    if wanted.folder is not None:
        keep(wanted.folder, table, csv)
    if ratio > BAR or (csv is not None and csv["megabytes"] > AUDITED):
        sys.exit("memory grows with the corpus")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in ("reviews", "csv"):
        work = {"reviews": of_reviews, "csv": of_csv}[sys.argv[1]]
        print(json.dumps(work(int(sys.argv[2]), Path(sys.argv[3]))))
    else:
        main()
