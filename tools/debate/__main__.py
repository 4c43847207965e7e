"""`python -m tools.debate RESULTS OUT`: write map.csv and map.svg."""

import sys
from pathlib import Path

from exegete.base.files import write_text
from exegete.report.theme import to_svg
from exegete.runs.tables import write_csv
from tools.debate.claims import the_map
from tools.debate.figure import drawn


def main(arguments: list[str]) -> int:
    """Two folders in, two files out."""
    if len(arguments) != 2:
        print("usage: python -m tools.debate RESULTS OUT", file=sys.stderr)
        return 2
    found, out = the_map(Path(arguments[0])), Path(arguments[1])
    write_csv(out / "map.csv", found)
    write_text(out / "map.svg", to_svg(drawn(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
