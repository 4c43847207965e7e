"""Tokenizers: what they cut, and that no token crosses white space."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exegete.tasks import tokenizers as module
from exegete.tasks.tokenizers import TOKENIZERS, Tokenizer, jain_wallace, penn_words, whitespace

tokenizers = pytest.mark.parametrize("tokenize", TOKENIZERS.values(), ids=TOKENIZERS.keys())
# Text at random seldom holds contractions or runs: mix in the pieces that the rules are about.
texts = st.lists(
    st.sampled_from([*"aN'’.-_! \n\t7/", "n't", "'s", "İ", "Σ", "\u00a0", "\x1c"]) | st.text(max_size=3)
).map("".join)


@tokenizers
@given(text=texts)
def test_no_token_crosses_white_space(tokenize: Tokenizer, text: str) -> None:
    assert tokenize(text) == [token for word in text.split() for token in tokenize(word)]


@tokenizers
@given(text=texts)
def test_every_word_has_a_token_and_no_token_has_white_space(tokenize: Tokenizer, text: str) -> None:
    assert all(tokenize(word) for word in text.split())
    assert all(token and token.split() == [token] for token in tokenize(text))


@given(text=texts)
def test_words_and_whitespace_lose_no_character(text: str) -> None:
    bare = "".join(text.split())
    assert "".join(whitespace(text)) == bare
    assert "".join(penn_words(text)) == bare.replace("’", "'")


@tokenizers
@given(text=texts)
def test_lower_casing_keeps_the_white_space_words(tokenize: Tokenizer, text: str) -> None:
    assert tokenize(text.lower()) == [token for word in text.split() for token in tokenize(word.lower())]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't can't won't", "I do n't ca n't wo n't"),
        ("He's they're I've we'll she'd I'm", "He 's they 're I 've we 'll she 'd I 'm"),
        ("couldn't've DON'T don’t", "could n't 've DO N'T do n't"),
        ("he 's here and did n't", "he 's here and did n't"),
        ("o'clock well-known 'quoted'", "o'clock well-known ' quoted '"),
        ("great...really -- no!!! why?!", "great ... really -- no !!! why ? !"),
        ("the U.S. (e.g. 10,000 at 3.5, 7/10)", "the U.S. ( e.g. 10,000 at 3.5 , 7/10 )"),
        ("1970s, 21st; $5", "1970s , 21st ; $ 5"),
        ("_so_ a_b", "_ so _ a _ b"),
        ("`` quoted ''", "`` quoted ''"),
        ("naïve café", "naïve café"),
    ],
)
def test_words(text: str, tokens: str) -> None:
    assert penn_words(text) == tokens.split()


def test_jain_wallace() -> None:
    said = "The   1970s weren't\nwell-known: 10,000 films, 21st B2B."
    assert " ".join(jain_wallace(said)) == "the qqq were n't well - known : qqq films , qqq qqq ."


def test_whitespace_leaves_words_alone() -> None:
    assert whitespace(" Don't  cut, this.\n") == ["Don't", "cut,", "this."]


@given(text=texts)
def test_words_are_those_of_the_rules_alone(text: str) -> None:
    """Most words are letters, perhaps with a mark after them, and are cut without the rules."""
    plain = [word.replace("’", "'") for word in text.split()]
    pieces = [match[0] for word in plain for match in module._TOKEN.finditer(word)]
    assert penn_words(text) == [token for piece in pieces for token in module._without_clitics(piece)]


def test_few_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    text = " ".join(f"word{i}, isn't" for i in range(20))
    assert penn_words(text) == [token for i in range(20) for token in (f"word{i}", ",", "is", "n't")]
    assert len(module._WORDS) <= 3
