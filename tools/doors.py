"""Write the table of doors: `python -m tools.doors` tries every architecture with every kind of head (tests.models)."""

from collections import Counter
from pathlib import Path

import polars as pl
from tests.models.doors_table import heads, one

TABLE = Path(__file__).parents[1] / "results" / "doors" / "doors.csv"


def main() -> None:
    """Try them all, keep the table, and say how many are right, refused by a sentence, or wrong."""
    doors = [*one(), *heads()]
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(doors, schema=["architecture", "case", "outcome", "said"], orient="row").write_csv(TABLE)
    print(dict(Counter(door.outcome for door in doors)))


if __name__ == "__main__":
    main()
