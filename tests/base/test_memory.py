"""What a process does with freed memory."""

import platform
import subprocess
import sys

import pytest


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries can't be told")
def test_the_c_library_takes_both_limits() -> None:
    """In a process of its own: what is told can't be taken back."""
    code = "from exegete.base.memory import keep_freed; print(keep_freed())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
