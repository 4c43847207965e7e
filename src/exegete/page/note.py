"""Note: how a question is measured, what misleads, and the page that says more."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """Shown beside a question's numbers in a report."""

    formula: str
    misleads: str
    page: str  # below docs/
    title: str  # of that page
