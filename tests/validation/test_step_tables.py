"""Steps of unequal sequences: what they are held against, and how near tables come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from chipsim import validate
from chipsim.errors import ConfigError
from chipsim.validation.step_tables import TableCase, shared, table_points


def test_equal_sequences_share_what_they_take_together() -> None:
    assert shared(lambda n, length: 2.0 * n * length, np.array([7, 7, 7])) == 42.0
    assert shared(lambda n, length: 1.0 * n * length, np.array([], np.int64)) == 0.0


def test_unequal_ones_take_what_each_has_to_do() -> None:
    """Work that grows with n and length adds up; the longest alone is never beaten."""
    lengths = np.array([3, 5, 100])
    assert shared(lambda n, length: float(n * length), lengths) == pytest.approx(108.0)
    # A launch is shared; where a batch takes no longer than one, the longest counts.
    assert shared(lambda n, length: 1.0 + n * length, lengths) == pytest.approx(109.0)
    assert shared(lambda _, length: float(length), lengths) == 100.0


@pytest.mark.slow
def test_a_table_of_a_small_model_is_within_a_fiftieth() -> None:
    case = TableCase("h100-sxm", "llama-3.2-1b", "tp=1")
    told = pd.DataFrame(table_points("ideal", [case], steps=6))
    assert set(told["regime"]) == {"equal", "ragged", "one long"}
    assert set(told["operator"]) == {"prefill", "decode", "mixed"}
    equal = told[told["regime"] == "equal"]["error"].abs()
    assert equal.max() < 0.01
    assert told["error"].abs().max() < 0.02


def test_tables_are_judged_by_the_model_alone() -> None:
    with pytest.raises(ConfigError, match="--data"):
        validate("tables", "somewhere")
