"""Company: Γ by four definitions of the weights, where they must agree and where they must not."""

import numpy as np
import pytest
import torch
from tools.company import HALVES, companies, gamma

from exegete.measures.gini import gini_correlation
from exegete.models.truths.families import FAMILIES, draw_family
from exegete.wings.calibration.truth import Arithmetic, Floats, WordMask, WordRows


def test_gamma_is_that_of_the_audit() -> None:
    e, attention = np.array([-3.0, 1.0, 0.5, 0.0]), np.array([0.3, 0.3, 0.1, 0.3])
    own = gini_correlation(torch.from_numpy(attention), torch.from_numpy(abs(e)))
    assert gamma(e, attention) == pytest.approx(float(own))


def test_where_words_add_up_company_changes_nothing() -> None:
    """Within the room of a null key a word has one effect and one weight, whoever else is there."""
    truth = draw_family(FAMILIES["backward cues"], 0)
    told, random = Arithmetic.of(truth.model), np.random.default_rng(0)
    for text in truth.task.split("population")[:10]:
        found = companies(told, np.array(truth.model.reader.rows(text.words)), random)
        assert found.whole == pytest.approx(found.alone)


class Swapping:
    """Two words of four count, and weights are right in whole texts alone: fewer words get weights upside down."""

    table = np.array([0.0, 1.0, 2.0, 4.0])

    def odds(self, texts: WordRows) -> Floats:
        """The sum of what words say."""
        return np.asarray(self.table[texts].sum(1))

    def attention(self, texts: WordRows) -> Floats:
        """As large as what a word says, or the less the more it says."""
        said = self.table[texts]
        return said if texts.shape[1] == 4 else 5 - said

    def odds_unweighted(self, texts: WordRows) -> Floats:
        """Nothing reads weights."""
        return np.repeat(self.odds(texts)[:, None], texts.shape[1], 1)

    def odds_flat(self, texts: WordRows, kept: WordMask) -> Floats:
        """Nothing reads weights."""
        del kept
        return self.odds(texts)


def test_weights_of_halves_are_those_of_halves() -> None:
    found = companies(Swapping(), np.arange(4), np.random.default_rng(1))
    assert list(found) == pytest.approx([1, 1, -1, -1, -1])
    assert HALVES > 1
