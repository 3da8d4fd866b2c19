"""Every suite at once: the page in the documents, and the record behind it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from chipsim.errors import ChipsimError
from chipsim.present.validation_page import filled, validation_overview
from chipsim.validation.overview import (
    FILE,
    LEFT_OUT,
    MADE,
    SAMPLE,
    TRANSFERRED,
    Overview,
    measured,
    overview,
    recorded,
    sample,
)
from chipsim.validation.statistics import KEYS
from tests.validation.folders import SHARED, needs_shared
from tests.validation.measured import ROWS, folder

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"


@cache
def everything() -> Overview:
    return overview()


def test_the_page_in_the_documents_is_what_the_command_writes() -> None:
    """If not: ``chipsim validate all --out docs/validation.md``."""
    assert PAGE.read_text(encoding="utf-8") == validation_overview(everything())


def test_the_record_belongs_to_the_blocks_and_formulas_of_today() -> None:
    """If not: write the record again, as the page says."""
    told = dict(line.split() for line in recorded().note(SAMPLE))
    assert {chip: f"{error:.6f}" for chip, error in sample().items()} == told


def test_a_record_says_what_it_was_made_of() -> None:
    known = recorded()
    assert known.note(MADE) == ["chipsim validate all --data FOLDER --folds 5 --out FILE.csv"]
    assert [line.split()[1] for line in known.note(FILE)] == ["sha256"] * 7
    assert any("power_law" in line for line in known.note(LEFT_OUT))
    assert set(known.errors["suite"]) == {"silicon", TRANSFERRED}
    whole = known.errors[(known.errors["suite"] == "silicon") & (known.errors["chip"] != "all")]
    assert whole["held_out_mape"].notna().all()


@needs_shared
@pytest.mark.slow
def test_the_record_is_what_the_public_tables_give() -> None:
    """All but what takes fits: the block's own errors, the transfers', the plain models'."""
    fresh, known = measured(SHARED / "silicon"), recorded()
    assert fresh.note(FILE) == known.note(FILE)
    assert fresh.note(LEFT_OUT) == known.note(LEFT_OUT)
    columns = [name for name in known.errors.columns if name != "held_out_mape"]
    pd.testing.assert_frame_equal(
        fresh.errors[columns], known.errors[columns], rtol=0, atol=1e-6
    )


def test_errors_of_llmcompass_and_of_plain_models_stand_beside_ours() -> None:
    errors = everything().errors
    row = errors[
        (errors["suite"] == "silicon-eager") & (errors["chip"] == "mi210")
        & (errors["operator"] == "matmul") & (errors["dtype"] == "fp16")
        & (errors["regime"] == "all")
    ].iloc[0]  # fmt: skip
    table = pd.read_csv(PAGE.parents[1] / "validation/data/silicon_operators.csv", comment="#")
    table = table[(table["chip"] == "mi210") & (table["operator"] == "gemm")]
    theirs = np.abs(table["llmcompass_s"] / table["measured_s"] - 1)
    assert row["llmcompass_mape"] == pytest.approx(theirs.mean())
    assert row["mape"] < row["llmcompass_mape"] < row["roofline_mape"]
    assert row["four_factor_mape"] < row["scaled_mape"]


def test_no_group_is_told_twice() -> None:
    assert not everything().errors.duplicated(list(KEYS)).any()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("sum public", "no such directive; one of error, table"),
        ("error public spad-h100 matmul", "no such figure"),
        ("error public all matmul llmcompass_mape", "no such figure"),
        ("table nothing", "no such suite"),
        ("points nothing", "no such figures"),
    ],
)
def test_a_template_that_asks_for_what_is_not_there_is_refused(asked: str, told: str) -> None:
    with pytest.raises(ChipsimError, match=told):
        filled(f"{{{{ {asked} }}}}", everything())


def test_a_folder_of_a_chip_that_nothing_came_before(tmp_path: Path) -> None:
    row = ROWS["gemm"][1].replace("h100", "a100")
    found = overview(folder(tmp_path, gemm=row))
    assert TRANSFERRED not in set(found.errors["suite"])
    assert filled("{{ table silicon-transfer }}", found) == "No rows."
