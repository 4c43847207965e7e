"""Estimates: what eight different audits said that they would take, and what they took. On an idle machine.

    python benchmarks/estimates.py [NAME …] [--log FILE]
    python benchmarks/estimates.py --small        a small audit: that nothing here has rotted

An estimate comes from the first pieces of the audit itself; the bar is a factor of 1.5, either way.
"""

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from waiting import small, waited

BAR = 1.5
CLASSES, TEXTS, LENGTH = 20, 6000, 25
FILMS = "rotten_tomatoes:min_df=2"
LONG = "imdb:train_limit=1000,min_df=2,max_length=150"
OWN = Path(__file__).parents[1] / "examples" / "own_model.py"
AUDITS: dict[str, list[str]] = {
    "default": [],
    "quick": ["--quick"],
    "pair": ["--quick", "--task", "snli:train_limit=20000", "--model", "pair:vectors=glove-50"],
    "translation": ["--quick", "--task", "toy_translation", "--model", "translator"],
    "long texts": ["--quick", "--task", LONG, "--model", "bilstm:vectors=glove-50"],
    "own module": ["--quick", "--task", FILMS, "--model", f"own:file={OWN}"],
    "cnn": ["--task", FILMS, "--model", "cnn:vectors=glove-50"],
    "many classes": ["--quick", "--task", "file:{classes}", "--model", "bilstm:size=50"],
}


def many_classes(path: Path) -> Path:
    """Made-up texts of twenty classes, a few words of each its own."""
    rng = random.Random(0)
    lines = ["text,label"]
    for number in range(TEXTS):
        label = number % CLASSES
        words = [
            f"own{label}x{rng.randrange(5)}" if rng.random() < 0.2 else f"w{rng.randrange(3000)}" for _ in range(LENGTH)
        ]
        lines.append(f"{' '.join(words)},class{label}")
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


def main() -> None:
    is_small = sys.argv[1:] == ["--small"]
    words = ["small"] if is_small else sys.argv[1:]
    log = Path(words.pop(words.index("--log") + 1)) if "--log" in words else None
    asked = [word for word in words if word != "--log"] or list(AUDITS)
    lines = ["audit,announced,taken,ratio"]
    print(f"{'audit':14} {'announced':>10} {'taken':>9} {'ratio':>7}   (bar {BAR}× either way)")
    with TemporaryDirectory() as home:
        audits = AUDITS | {"small": ["--quick", *small(Path(home))]}
        classes = many_classes(Path(home) / "classes.csv")
        for name in asked:
            command = [word.format(classes=classes) for word in audits[name]]
            found = waited(["audit", *command, "--out", str(Path(home) / name.replace(" ", "_"))])
            said = found.said or float("nan")
            ratio = said / found.seconds
            fine = "" if 1 / BAR <= ratio <= BAR else "  beyond the bar"
            print(f"{name:14} {said:8.0f} s {found.seconds:7.1f} s {ratio:6.2f}×{fine}", flush=True)
            lines.append(f"{name},{said:.0f},{found.seconds:.1f},{ratio:.2f}")
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(lines) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
