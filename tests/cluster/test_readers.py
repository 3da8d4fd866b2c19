"""Traces of others read as they are, and refused in one line where they are wrong."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from chipsim import ChipsimError, load_workload
from chipsim.cluster.readers import FORMATS, read_rows, read_trace
from chipsim.cluster.rows import TWICE, UNSORTED, ZERO, spread_out
from tests.cluster import traces

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = {
    "azure": traces.AZURE_2023,
    "mooncake": traces.MOONCAKE,
    "burstgpt": traces.BURSTGPT,
    "csv": traces.GENERIC,
    "lengths": traces.LENGTHS,
    "vllm": traces.VLLM,
}


def written(folder: Path, text: str, name: str = "trace.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_is_known_by_its_content(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, EXAMPLES[kind])
    assert read_rows(path).format == kind
    assert read_rows(path, kind).format == kind


def test_azure_keeps_seven_digits_and_crosses_midnight_and_month(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.AZURE_2023))
    assert made.arrival_s.tolist() == [0.0, 0.052, 14 * 86400.0 + 0.0520001]
    assert made.prompt_tokens.tolist() == [4808, 3180, 110]
    assert made.output_tokens.tolist() == [10, 8, 27]


def test_azure_2024_has_zones_and_whole_seconds(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.AZURE_2024))
    assert made.arrival_s.tolist() == pytest.approx([0.0, 0.007405, 0.99007], abs=1e-9)


def test_burstgpt_drops_and_counts_rows_without_tokens(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.BURSTGPT))
    assert made.arrival_s.tolist() == [0.0, 113.0]
    assert made.output_tokens.tolist() == [18, 276]
    assert made.dropped == {ZERO: 1}


def test_mooncake_has_milliseconds_and_blocks(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.MOONCAKE))
    assert made.arrival_s.tolist() == [0.0, 3.0, 3.0]
    assert made.block_tokens == 512
    assert made.block_offsets.tolist() == [0, 3, 6, 7]
    assert made.summary()["prefix_hit_share"] == 1024 / (1100 + 1500 + 12)


def test_a_benchmark_has_lengths_and_times(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.VLLM))
    assert made.arrival_s.tolist() == [0.0, 0.5]
    assert made.dropped == {ZERO: 1}


def test_a_generic_table_keeps_its_clock_sessions_and_classes(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, traces.GENERIC))
    assert made.arrival_s.tolist() == [1.5, 2.5]
    assert made.session.tolist() == [7, 8]
    assert made.priority.tolist() == [0, 1]


def test_columns_of_other_simulators_are_known(tmp_path: Path) -> None:
    splitwise = (
        "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
        "0,2,0,0.5,1,4808,10\n"
    )
    vidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,4808,10\n"
    for text in (splitwise, vidur):
        made = read_trace(written(tmp_path, text))
        assert (made.prompt_tokens[0], made.output_tokens[0]) == (4808, 10)


def test_lengths_need_a_rate_and_keep_their_order(tmp_path: Path) -> None:
    for text in (
        traces.LENGTHS,
        '[{"prompt_len": 100, "output_len": 20}, {"prompt_len": 200, "output_len": 30}]',
        "prompt_tokens,output_tokens\n100,20\n200,30\n",
    ):
        path = written(tmp_path, text)
        with pytest.raises(ChipsimError, match=r"trace\.txt: .* give a rate"):
            read_trace(path)
        made = load_workload(path, rate=2.0)
        assert made.prompt_tokens.tolist() == [100, 200]
        assert made.output_tokens.tolist() == [20, 30]


def test_rows_out_of_order_and_doubles_are_counted(tmp_path: Path) -> None:
    text = "arrival_s,prompt_tokens,output_tokens\n2,5,1\n1,6,1\n2,5,1\n"
    made = read_trace(written(tmp_path, text))
    assert made.arrival_s.tolist() == [1.0, 2.0, 2.0]
    assert made.counted[UNSORTED] == 1
    assert made.counted[TWICE] == 1


def test_parents_follow_their_rows(tmp_path: Path) -> None:
    text = "arrival_s,prompt_tokens,output_tokens,parent\n5,1,1,1\n1,2,1,-1\n0,0,1,-1\n"
    made = read_trace(written(tmp_path, text))
    assert made.prompt_tokens.tolist() == [2, 1]
    assert made.parent.tolist() == [-1, 0]


def test_packed_files_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + traces.GENERIC.encode()))
    assert len(read_trace(path)) == 2
    path.write_bytes(gzip.compress(traces.GENERIC.encode())[:20])
    with pytest.raises(ChipsimError, match="a whole gzip file"):
        read_trace(path)


HEAD = "arrival_s,prompt_tokens,output_tokens\n"
LINE = '{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}\n'
BAD = {
    "empty": ("", "format: '' .*azure: CSV"),
    "prose": ("once upon a time\n", "mooncake: JSON lines"),
    "no-rows": (HEAD, "0 rows"),
    "negative-time": (HEAD + "-1,1,1\n", "row 1, arrival_s: -1"),
    "nan-time": (HEAD + "0,1,1\nnan,1,1\n", "row 2, arrival_s: .*a number in every row"),
    "infinite-time": (HEAD + "inf,1,1\n", "row 1, arrival_s: inf"),
    "text-time": (HEAD + "0,1,1\nsoon,1,1\n", "row 2, arrival_s: 'soon'"),
    "empty-cell": (HEAD + "0,,1\n", "row 1, prompt_tokens: None"),
    "negative-tokens": (HEAD + "0,-4,1\n", "row 1, prompt_tokens: -4"),
    "part-of-a-token": (HEAD + "0,4.5,1\n", "row 1, prompt_tokens: 4.5"),
    "huge-tokens": (HEAD + "0,4,3000000000\n", "row 1, output_tokens: 3000000000"),
    "huger-tokens": (HEAD + "0,4,1e400\n", "row 1, output_tokens"),
    "beyond-64-bits": (HEAD + "0,4,99999999999999999999999\n", "row 1, output_tokens"),
    "only-zeros": (HEAD + "0,0,1\n0,1,0\n", "at least one with prompt and output tokens"),
    "long-row": (HEAD + "0,1,1\n0,1,1,9,9\n", "a CSV table"),
    "twice": ("arrival_s,prompt_tokens,output_tokens,Output Tokens\n0,1,1,1\n", "column"),
    "parent-beyond": (HEAD.strip() + ",parent\n0,1,1,5\n", "row 1, parent: 5"),
    "parent-itself": (HEAD.strip() + ",parent\n0,1,1,0\n", "earlier request"),
    "bad-date": (traces.AZURE_2023 + "2023-13-40 00:00:00,1,1\n", "row 4, timestamp"),
    "blocks": (HEAD.strip() + ",blocks_of_512\n0,1,1,a b\n", "blocks_of_512"),
    "json": ("{", "format"),
    "json-half": ('{"timestamp": 0, "input_length": 1', "one per line"),
    "mooncake-key": ('{"timestamp": 0, "input_length": 5}\n', "output_length: None"),
    "mooncake-null": (LINE + LINE.replace("600", "null"), r"input_length\[1\]: None"),
    "mooncake-text": (LINE.replace("600", '"x"'), "input_length: 'string'"),
    "mooncake-negative": (LINE.replace("600", "-6"), r"input_length\[0\]: -6"),
    "mooncake-hashes": (LINE.replace("600", "2000"), r"hash_ids\[0\]: '2 ids' .*4, one per"),
    "vllm-short": ('{"input_lens": [1, 2], "output_lens": [1]}', "output_lens: '1 entries'"),
    "vllm-none": ('{"input_lens": [1]}', "output_lens: None"),
    "vllm-text": ('{"input_lens": ["a"], "output_lens": [1]}', "a list of numbers"),
    "list-empty": ("[]", "at least one"),
    "list-triple": ("[[1, 2], [1, 2, 3]]", r"\[1\]: \[1, 2, 3\]"),
    "list-huge": (f"[[{10**30}, 1]]", "below 2"),
    "sharegpt-texts": ('[{"conversations": []}]', "holds texts, not lengths"),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: tuple[str, str]) -> None:
    content, message = text
    with pytest.raises(ChipsimError, match=message) as caught:
        read_trace(written(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("trace.txt: ")


def test_a_format_that_does_not_exist_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="did you mean mooncake"):
        read_trace(written(tmp_path, traces.MOONCAKE), "moncake")


def test_binary_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(HEAD.encode() + b"\xff\xfe\x00,1,1\n")
    for bad in (path, tmp_path, tmp_path / "none.csv"):
        with pytest.raises(ChipsimError):
            read_trace(bad)


def test_stamps_are_spread_inside_their_bins() -> None:
    stamps = np.repeat([0.0, 3.0, 6.0, 60.0], 3)
    assert spread_out(stamps, "even")[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    # the pause after 6 s stays: a bin is no longer than the median one
    assert spread_out(stamps, "even")[8] == 8.0
    drawn = spread_out(stamps, "random", seed=1)
    assert (np.diff(drawn) >= 0.0).all()
    assert (np.floor(drawn / 3.0) * 3.0 == stamps).all()
    assert np.array_equal(drawn, spread_out(stamps, "random", seed=1))
    assert not np.array_equal(drawn, spread_out(stamps, "random", seed=2))


# Figures of shared/reference/traces/README.md, as printed there.
FIGURES = {
    "azure_code.csv": {
        "requests": 8819, "span_s": 3435.9, "rate_rps": 2.567, "peak_rps": 67,
        "prompt_tokens_total": 18059974, "output_tokens_total": 245896,
        "prompt_to_output": 73.45, "median_prompt_to_output": 91.81,
        "interarrival_cv": 13.152, "prompt_output_correlation": 0.001,
    },
    "azure_conv.csv": {
        "requests": 19366, "span_s": 3501.7, "rate_rps": 5.530, "peak_rps": 16,
        "prompt_tokens_total": 22361870, "output_tokens_total": 4088665,
        "prompt_to_output": 5.47, "median_prompt_to_output": 3.58,
        "interarrival_cv": 1.094, "prompt_output_correlation": -0.112,
    },
    "mooncake_synthetic_trace.jsonl": {
        "requests": 3993, "span_s": 1022.0, "rate_rps": 3.907, "peak_rps": 13,
        "prompt_tokens_total": 61194628, "output_tokens_total": 595432,
        "prompt_to_output": 102.77, "median_prompt_to_output": 111.59,
        "interarrival_cv": 1.011, "prompt_output_correlation": -0.374,
        "zero_gap_share": 0.003, "prefix_hit_share": 0.651, "requests_hit_share": 0.446,
        "distinct_blocks": 43924,
    },
}  # fmt: skip
ROWS = {
    ("azure_code.csv", "prompt_tokens"):
        "2047.8 1973.9 3 147 578 1469 2744 5188 7303 7436 7437",
    ("azure_code.csv", "output_tokens"): "27.9 59.9 6 7 9 13 24 55 90 251.5 1899",
    ("azure_code.csv", "interarrival_s"):
        "0.4 5.1 6e-06 0.000209 0.002077 0.0638 0.104 0.2729 0.4008 2.205 217.169",
    ("azure_conv.csv", "prompt_tokens"):
        "1154.7 1108.8 2 207 396 1020 1189 2734 4083 4142 14050",
    ("azure_conv.csv", "output_tokens"): "211.1 162.9 7 54 85 129 395 424 451 601 1000",
    ("mooncake_synthetic_trace.jsonl", "prompt_tokens"):
        "15325.5 18382.5 13 30 277 11587 23175 38611 48905 66456 191378",
    ("mooncake_synthetic_trace.jsonl", "output_tokens"):
        "149.1 178.2 1 4 11 69 250 389 519 768.1 893",
    ("mooncake_synthetic_trace.jsonl", "reusable_prompt_tokens"):
        "9980.6 17367.3 0 0 0 0 16384 35840 41984 61952 190976",
    ("mooncake_synthetic_trace.jsonl", "new_prompt_tokens"):
        "5344.8 11548.4 0 22 70 374 1491 19176 28697 49769 191374",
}  # fmt: skip


def half_a_digit(text: str) -> float:
    """Half of the last digit that is printed, and a little for how halves are rounded."""
    digits = text.split("e", maxsplit=1)[0]
    after = len(digits.partition(".")[2])
    exponent = int(text.split("e")[1]) if "e" in text else 0
    return 0.51 * 10.0 ** (exponent - after)


@pytest.mark.parametrize("name", FIGURES)
def test_reference_traces_have_their_figures(name: str) -> None:
    found = read_trace(traces.reference(name)).summary()
    for key, value in FIGURES[name].items():
        assert found[key] == pytest.approx(value, abs=half_a_digit(str(value))), key


@pytest.mark.parametrize(("name", "series"), ROWS)
def test_reference_traces_have_their_percentiles(name: str, series: str) -> None:
    summary = read_trace(traces.reference(name)).summary()
    row = next(row for row in summary["rows"] if row["series"] == series)
    values = [value for key, value in row.items() if key != "series"]
    for value, printed in zip(values, ROWS[name, series].split(), strict=True):
        assert value == pytest.approx(float(printed), abs=half_a_digit(printed)), printed


def test_statistics_are_json_without_nan(tmp_path: Path) -> None:
    for kind in ("azure", "mooncake", "csv"):
        summary = read_trace(written(tmp_path, EXAMPLES[kind])).summary()
        json.dumps(summary, allow_nan=False)
