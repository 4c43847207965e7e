"""Citations: the software and the papers whose tests a report quotes, as BibTeX."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from exegete import __version__
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.report.section import anchor

SOFTWARE = {  # the facts of CITATION.cff, which is not installed
    "title": "Exegete: may attention be read as an explanation?",
    "author": "{The Exegete authors}",
    "version": __version__,
    "license": "Apache-2.0",
}


def bibtex(papers: Iterable[str]) -> str:
    """Our entry first, then one for every paper; one that we have no entry for is named in a comment."""
    facts = ",\n".join(f"  {key:<9} = {{{value}}}" for key, value in SOFTWARE.items())
    known = entries()
    names = dict.fromkeys(name for written in papers for name in _each(written))
    quoted = {citation_key(name): known.get(citation_key(name), f"% {name}") for name in names}
    return "\n\n".join([f"@software{{exegete,\n{facts}\n}}", *quoted.values()])


def _each(written: str) -> list[str]:
    """The papers of a list: they end with their years.

    >>> _each("Jain & Wallace 2019, section 4; DeYoung et al. 2020")
    ['Jain & Wallace 2019', 'DeYoung et al. 2020']
    """
    return re.findall(r"[^\W\d_][^,;()]*?\b\d{4}\b", written) or ([written] if written else [])


def citation_key(paper: str) -> str:
    """A paper as its entry is called.

    >>> citation_key("Jain & Wallace 2019"), citation_key("DeYoung et al. 2020")
    ('jain_wallace_2019', 'deyoung_2020')
    """
    return anchor(paper.replace(" et al.", "")).replace("-", "_")


@cache
def entries() -> dict[str, str]:
    """All entries that we have, by their keys."""
    written = files("exegete.answers.pages").joinpath("papers.bib").read_text(encoding="utf8")
    found = re.findall(r"^@\w+\{(\w+),.*?^\}", written, re.MULTILINE | re.DOTALL)
    whole = re.findall(r"^@\w+\{.*?^\}", written, re.MULTILINE | re.DOTALL)
    return dict(zip(found, whole, strict=True))


def papers_of(experiment: str) -> list[str]:
    """The papers that an experiment of ours comes from, as the catalogue names them."""
    said = re.search(r"\(([^()]*)\)$", EXPERIMENTS[experiment].summary) if experiment in EXPERIMENTS else None
    return _each(said[1]) if said else []
