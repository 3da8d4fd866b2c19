"""Measured steps as a table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from chipsim.cluster.measured import measured_table
from chipsim.errors import ConfigError

ROWS = """phase,batch,tokens,latency_s
prefill,1,100,0.010
prefill,1,200,0.020
prefill,2,100,0.999
prefill,1,400,0.060
decode,1,100,0.0110
decode,1,200,0.0120
decode,4,100,0.0140
decode,4,300,0.0200
"""


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    path = tmp_path / "steps.csv"
    path.write_text(ROWS)
    return path


def test_rows_come_back_and_lines_lie_between(steps: Path) -> None:
    table = measured_table(steps)
    assert table.prefill_s([100]) == pytest.approx(0.010)
    assert table.prefill_s([100, 100]) == pytest.approx(0.020)  # of fewest prompts
    assert table.prefill_s([300]) == pytest.approx(0.040)
    assert table.prefill_s([600]) == pytest.approx(0.100)
    assert table.decode_s([128] * 4) == pytest.approx(0.01484)
    assert table.decode_s([96, 96]) == pytest.approx((2 * 0.01096 + 0.01388) / 3)


def test_a_mixed_step_is_a_longer_prefill_and_what_contexts_add(steps: Path) -> None:
    table = measured_table(steps, mixed_factor=1.1)
    assert table.mixed_s([296], 0, [128] * 4) == pytest.approx(1.1 * 0.040 + 128 * 3e-5)


def test_a_frame_does_as_well(steps: Path) -> None:
    frame = pd.read_csv(steps)
    assert measured_table(frame).prefill_s([150]) == pytest.approx(0.015)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("decode,4,300,0.0200", "decode,4,300,nan"), r"row 9\.latency_s"),
        (("decode,4,300,0.0200", "decode,4,300,-1"), r"row 9\.latency_s"),
        (("prefill,1,100", "prefill,0,100"), r"row 2\.batch"),
        (("decode,1,100", "encode,1,100"), "encode"),
        (("latency_s", "seconds"), "latency_s"),
        (("decode,4,300,0.0200", "decode,4,300,1e308"), r"row 9\.latency_s: .* at most 1e\+09"),
    ],
)
def test_what_is_wrong_is_named(steps: Path, change: tuple[str, str], said: str) -> None:
    steps.write_text(steps.read_text().replace(*change))
    with pytest.raises(ConfigError, match=said):
        measured_table(steps)


def test_too_few_rows_are_refused(steps: Path) -> None:
    steps.write_text("\n".join(ROWS.splitlines()[:2]))
    with pytest.raises(ConfigError, match="two prefill steps"):
        measured_table(steps)


def test_nothing_below_zero(steps: Path) -> None:
    table = measured_table(steps)
    for part in (table.seconds.prefill, table.seconds.decode, table.seconds.contexts):
        assert np.isfinite(part).all()


def test_lines_that_go_below_zero_are_refused_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "steep.csv"
    header = "phase,batch,tokens,latency_s\n"
    path.write_text(header + "prefill,1,1000,0.1\nprefill,1,2000,0.5\ndecode,1,1,0.01\n")
    with pytest.raises(ConfigError, match=r"steep\.csv: prefill: '-0.3 s' is not allowed"):
        measured_table(path)
    path.write_text(header + "prefill,1,1,0.1\nprefill,1,2,0.2\n"
                    "decode,1,1,0.02\ndecode,1,100,0.01\n")  # fmt: skip
    with pytest.raises(ConfigError, match=r"steep\.csv: decode: '-.* s' is not allowed"):
        measured_table(path)
