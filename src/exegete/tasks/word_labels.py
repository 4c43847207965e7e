"""Word labels: a weak rationale from the sentiment of single words (Stanford Sentiment Treebank, Socher et al. 2013).

People there graded every word out of context, 0 (very negative) to 4 (very positive), and every sentence likewise. The
words that are not neutral and lean as their sentence does are taken as the reason for its label. Nobody marked them for
that, and what only a phrase says ("not bad") is missed: hence weak.
"""

from collections.abc import Mapping
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record

NEUTRAL = 2
NOTE = "The rationales are weak: words whose own sentiment, graded out of context, leans as the sentence's does."


def with_weak_rationale(record: Record, row: Mapping[str, Any], where: str) -> Record:
    """The record of a row, with the words that lean as their sentence does; a neutral sentence has none.

    A row without `word_labels`, or with a rationale of its own, stays as it is.
    """
    grades, sentence = row.get("word_labels"), row.get("fine")
    if grades is None or "rationale" in row:
        return record
    if not isinstance(grades, str) or not set(grades) <= set("01234") or len(grades) != len(record.texts[0].split()):
        raise ExegeteError(f"{where}: 'word_labels' is not one digit from 0 to 4 per word: {grades!r:.40}")
    if not isinstance(sentence, int) or not 0 <= sentence <= 4:
        raise ExegeteError(f"{where}: 'fine', the sentence's own grade, is not a number from 0 to 4: {sentence!r:.40}")
    leaning = sentence - NEUTRAL
    words = (i for i, grade in enumerate(grades) if (int(grade) - NEUTRAL) * leaning > 0)
    return record._replace(rationale=tuple((i, i + 1) for i in words))
