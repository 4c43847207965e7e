"""Scripts without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan.

A tokenizer that cuts at white space takes a whole clause of them for one word: nearly every word of a test text is then
unknown, and there is nothing to explain. So such texts are noticed, and `tokenizer=characters` cuts them.
"""

import re
import unicodedata
from collections.abc import Sequence

SYLLABLES = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
LETTERS = "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff"
# Mean characters in a row above which nobody put spaces between the words: these have one or two, or about five.
RUNS = {re.compile(f"[{SYLLABLES}]+"): 3.0, re.compile(f"[{LETTERS}]+"): 8.0}
SAMPLE = 200  # texts that are looked at
ENOUGH = 0.1  # of the characters of these texts
_UNSPACED = re.compile(f"[{SYLLABLES}{LETTERS}]")


def is_uncut(texts: Sequence[str]) -> bool:
    """Whether a good part of some texts is written without spaces between words."""
    total = sum(map(len, texts))
    for script, usual in RUNS.items():
        runs = [len(run) for text in texts for run in script.findall(text)]
        if runs and sum(runs) > ENOUGH * total and sum(runs) > usual * len(runs):
            return True
    return False


def split_characters(word: str) -> list[str]:
    """A word cut before and after every character of such a script; marks stay with the letter that they are on.

    >>> split_characters("电影good")
    ['电', '影', 'good']
    """
    found: list[str] = []
    for character in word:
        mark, alone = unicodedata.category(character).startswith("M"), _UNSPACED.match(character)
        if found and (mark or not (alone or _UNSPACED.match(found[-1]))):
            found[-1] += character
        else:
            found.append(character)
    return found
