"""Settings of tasks: what is refused, and in which words."""

import pytest

from exegete.base.errors import UsageError
from exegete.base.names import validate
from exegete.tasks.catalogue import load_task
from exegete.tasks.settings import TaskSettings


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("sst:min_lenght=5", "unknown setting of task 'sst' 'min_lenght': did you mean 'min_length'"),
        ("sst:subset=jw", "unknown setting of task 'sst' 'subset'"),
        ("imdb:subset=half", "'all' or 'jw'"),
        ("sst:tokenizer=wrds", "unknown tokenizer 'wrds': did you mean 'words'"),
        ("sst:lower=perhaps", "lower"),
        ("sst:min_df=0", "min_df"),
        ("sst:train_limit=0", "train_limit"),
        ("sst:min_length=9,max_length=3", "min_length=9 is above max_length=3"),
        ("file:a.csv:colour=red", "unknown setting of task 'file:a.csv' 'colour'"),
        ("hf:a/b:split=part", "unknown setting of task 'hf:a/b' 'split'"),
        ("sts", "unknown task 'sts': did you mean 'sst'"),
    ],
)
def test_wrong_words_are_usage_errors(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_task(spec)
    assert sentence in str(raised.value)


def test_strings_become_values_and_stay() -> None:
    settings = validate(TaskSettings, {"lower": "true", "min_df": "3", "legacy_length": "false"}, "task")
    assert (settings.lower, settings.min_df, settings.legacy_length) == (True, 3, False)
    with pytest.raises(ValueError, match="frozen"):
        settings.min_df = 4
