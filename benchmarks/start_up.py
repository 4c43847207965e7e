"""Start-up: seconds until help and listings answer."""

import subprocess
import sys

from common import below, seconds

BAR = 1.0  # seconds


def main() -> None:
    for words in (["--help"], ["ls"], ["ls", "tasks", "--json"]):
        command = [sys.executable, "-c", "from exegete.cli import main; main()", *words]
        best = seconds(lambda command=command: subprocess.run(command, check=True, capture_output=True), 3)  # type: ignore[misc]
        print(f"exegete {' '.join(words):20} {best:.2f} s  (bar {BAR:.0f} s)")
        if below(BAR, best):
            sys.exit("start-up: above the bar")


if __name__ == "__main__":
    main()
