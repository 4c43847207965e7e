"""Source: a fingerprint of everything that is shipped, so that what another version made is not taken for ours."""

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = "exegete"


@cache
def package_hash() -> str:
    """Of every file of the package: code, templates, criteria, studies."""
    home = Path(__file__).parents[1]
    files = [path for path in home.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return digest_of(*sorted(files))


def digest_of(*files: Path) -> str:
    """A fingerprint of what is in files, in this order."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def is_ours(thing: object) -> bool:
    """Whether a thing's class is part of the package, which `package_hash` knows, and not of a user's own code."""
    return type(thing).__module__.partition(".")[0] == PACKAGE
