"""The default tests under every setting that changes how a CPU rounds, one factor at a time, with a line each.

    python -m tools.every_cpu [tests/measures …]

Torch takes the kernels of the CPU's widest vectors, MKL and oneDNN take theirs, and two threads add in another order.
A setting that this CPU has not (avx512) is torch's choice of the next best. `EXEGETE_TEST_CPU` needs no such CPU: it
moves last bits at random (`tests/other_cpu.py`).
"""

import os
import subprocess
import sys
import time

FACTORS = (
    "EXEGETE_TEST_THREADS=1",  # and all else unset
    "ATEN_CPU_CAPABILITY=default",
    "ATEN_CPU_CAPABILITY=avx2",
    "ATEN_CPU_CAPABILITY=avx512",
    "MKL_CBWR=COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA=SSE41",
    "EXEGETE_TEST_THREADS=2",
)
NAMES = {factor.split("=")[0] for factor in FACTORS}


def run(factor: str, words: list[str]) -> bool:
    """One run of the tests with one factor; what it said in a line, and all of it where it failed."""
    environment = {name: value for name, value in os.environ.items() if name not in NAMES} | dict([factor.split("=")])
    environment["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that wait by turning keep the cores from those that work
    command = [sys.executable, "-m", "pytest", "-n", "auto", "-p", "no:cacheprovider", "--tb=short", *words]
    start = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines()
    print(f"{factor:28} {time.monotonic() - start:4.0f} s  {said[-1] if said else done.stderr}", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    fine = [run(factor, sys.argv[1:]) for factor in FACTORS]
    sys.exit(not all(fine))
