"""A file that is wrong gives exactly one line, with the file and the field in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from chipsim.arch_configs import load
from chipsim.arch_configs.find import LIBRARY
from chipsim.chip import Chip
from chipsim.errors import ConfigError
from chipsim.ops.model import ModelSpec
from chipsim.units import parse

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def edited(kind: str, name: str, field: str, value: Any) -> str:
    """The text of a library file with one field set (``...``: removed)."""
    data, _ = load(kind, name)
    inner = data
    *parents, last = field.split(".")
    for parent in parents:
        inner = inner[parent]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return yaml.safe_dump(data)


def message_of(reader: type[Chip | ModelSpec], path: str) -> str:
    with pytest.raises(ConfigError) as caught:
        reader.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("mine.yaml: ")
    return message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing but a comment\n",
        "- a\n- b\n",
        "just words\n",
        "3\n",
        "a: [1, 2\n",
        "{\n",
        "\tname: x\n",
        "a: !!python/object:os.system {}\n",
        "\x00",
        "a: 2020-99-99\n",
        "a: " + "9" * 5000,
    ],
)
@pytest.mark.parametrize("reader", [Chip, ModelSpec])
def test_a_file_that_is_no_mapping(
    tmp_path: Path, reader: type[Chip | ModelSpec], text: str
) -> None:
    assert "allowed: a YAML mapping" in message_of(reader, write(tmp_path, text))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x81")
    assert "a YAML mapping" in message_of(Chip, str(path))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("core.lane", 4, "no such key; there are lanes, sram, systolic_array, vector_unit"),
        ("colour", "green", "no such key"),
        ("source", ..., "the key is required"),
        ("memory.bandwidth", ..., "the key is required"),
        ("core.systolic_array", ..., "the key is required"),
        ("memory.bandwidth", "80 GB", "bandwidth with its unit"),
        ("memory.bandwidth", "3352 parsecs", "bandwidth with its unit"),
        ("memory.bandwidth", "fast", "bandwidth with its unit"),
        ("memory.bandwidth", 3352e9, "bandwidth with its unit"),
        ("memory.bandwidth", "3352", "bandwidth with its unit"),
        ("memory.bandwidth", None, "bandwidth with its unit"),
        ("memory.bandwidth", True, "bandwidth with its unit"),
        ("memory.bandwidth", ["3352 GB/s"], "bandwidth with its unit"),
        ("memory.bandwidth", "0 GB/s", "a number above 0"),
        ("memory.bandwidth", "-3352 GB/s", "a number above 0"),
        ("memory.bandwidth", "nan GB/s", "bandwidth with its unit"),
        ("memory.bandwidth", "inf GB/s", "bandwidth with its unit"),
        ("memory.bandwidth", "1e400 GB/s", "bandwidth with its unit"),
        ("memory.bandwidth", "1e30 TB/s", "a number above 0"),
        ("memory.bandwidth", "1e-40 GB/s", "a number above 0"),
        ("memory.capacity", "80 GB/s", "capacity with its unit"),
        ("clock.tensor", "1.83 s", "frequency with its unit"),
        ("link.latency", "-1 us", "0 or more"),
        ("l2.bandwidth", "5 TB/s", "bytes per cycle with its unit"),
        ("cores", 0, "1 or more"),
        ("cores", -3, "1 or more"),
        ("cores", 1.5, "a whole number"),
        ("cores", True, "a whole number"),
        ("cores", float("nan"), "a whole number"),
        ("cores", float("inf"), "a whole number"),
        ("cores", 10**12, "at most"),
        ("core.lanes", "many", "a whole number"),
        ("core.systolic_array.macs_per_cycle.fp16", 0, "a number above 0"),
        ("core.systolic_array.macs_per_cycle.fp16", float("nan"), "finite number"),
        ("core.systolic_array.macs_per_cycle", {"fp16": True}, "numbers"),
        ("core.systolic_array.macs_by_accumulate", {"fp16": {"fp9": 1}}, "formats of macs_per"),
        ("core.vector_unit.flops_per_element", float("inf"), "finite number"),
        ("core.vector_unit.flops_per_element", True, "a number"),
        ("machine.topology", "star", "'fully-connected', 'switch', 'ring' or 'torus'"),
        ("machine.sides", [2, 4], "null: only a torus has sides"),
        ("machine.in_network_reduction", True, "false, unless topology is switch"),
        ("memory", 3, ""),
    ],
)
def test_a_bad_field_of_a_chip(tmp_path: Path, field: str, value: Any, allowed: str) -> None:
    text = edited("chips", "spad-h100", field, value)
    message = message_of(Chip, write(tmp_path, text))
    assert message.startswith(f"mine.yaml: {field}: ")
    assert allowed in message


def test_a_misspelt_key_comes_before_the_one_that_is_missing_for_it(tmp_path: Path) -> None:
    text = edited("chips", "spad-h100", "cores", ...).replace("core:", "cores_: 4\ncore:", 1)
    assert message_of(Chip, write(tmp_path, text)).startswith("mine.yaml: cores_: 4 ")


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("layer", 80, "no such key"),
        ("layers", ..., "the key is required"),
        ("layers", 0, "1 or more"),
        ("hidden", -8192, "1 or more"),
        ("hidden", 8192.5, "a whole number"),
        ("heads", float("nan"), "a whole number"),
        ("heads", float("inf"), "a whole number"),
        ("vocabulary", 10**30, "at most"),
        ("kv_heads", 7, "a divisor of the 64 heads"),
        ("norm", "batchnorm", "'layernorm' or 'rmsnorm'"),
        ("biases", "some", ""),
    ],
)
def test_a_bad_field_of_a_model(tmp_path: Path, field: str, value: Any, allowed: str) -> None:
    text = edited("models", "llama-2-70b", field, value)
    message = message_of(ModelSpec, write(tmp_path, text))
    assert message.startswith(f"mine.yaml: {field}")
    assert allowed in message


def test_heads_that_do_not_divide_the_hidden_size_need_a_width(tmp_path: Path) -> None:
    text = edited("models", "llama-2-70b", "hidden", 8193)
    message = message_of(ModelSpec, write(tmp_path, text))
    assert message.startswith("mine.yaml: head_dim: ")
    assert "64 heads do not divide the hidden size 8193" in message


@pytest.mark.parametrize(
    "text", ["9**9**9 GB", "(1 GB", "GB", "1 MB + 2 MB", "2*3 MB", "1_0 GB", "1 GB; 2 GB"]
)
def test_a_quantity_is_a_number_and_a_unit_and_nothing_to_evaluate(text: str) -> None:
    with pytest.raises(ValueError, match="with its unit"):
        parse(text, "capacity")


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    text = (LIBRARY / "chips" / "h100-sxm.yaml").read_text(encoding="utf-8")
    path.write_text(text + "\ncores: 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"twice\.yaml: cores: .*line \d+.*stands once"):
        Chip.load(str(path))


def test_a_value_as_large_as_its_aliases_is_shown_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    path.write_text("\n".join([*levels, "name: *a9"]), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        Chip.load(str(path))
    assert len(str(error.value)) < 400


def test_fewer_cores_on_the_die_than_work_are_refused(tmp_path: Path) -> None:
    text = edited("chips", "h100-sxm", "floorplan.cores", 100)
    with pytest.raises(ConfigError, match=r"mine.yaml: floorplan.*at least the 132 that work"):
        Chip.load(write(tmp_path, text))
    equal = write(tmp_path, edited("chips", "h100-sxm", "floorplan.cores", 132))
    assert Chip.load(equal).cores == 132
    for fraction in (0.001, 0.01, 0.3, 1.7):  # working cores are rounded, spares are not
        assert Chip.load("h100-sxm").scaled(cores=fraction).floorplan


def test_an_area_is_an_area(tmp_path: Path) -> None:
    text = edited("chips", "h100-sxm", "die_area", 814)
    with pytest.raises(ConfigError, match="allowed: an area with its unit"):
        Chip.load(write(tmp_path, text))
