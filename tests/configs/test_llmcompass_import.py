"""Reading LLMCompass's JSON, and writing a chip as YAML that reads back equal."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ChipsimError, ConfigError
from chipsim.importers import import_chip, import_llmcompass, to_yaml
from chipsim.importers.chip_yaml import SCALES, quantity_text
from chipsim.units import parse

if TYPE_CHECKING:
    from pathlib import Path

# An invented chip in LLMCompass's schema.
INVENTED: dict[str, Any] = {
    "name": "Invented (12GB)x6",
    "device_count": 6,
    "interconnect": {
        "link": {
            "name": "wire",
            "bandwidth_per_direction_byte": 7e9,
            "bandwidth_both_directions_byte": 14e9,
            "latency_second": 3e-6,
            "flit_size_byte": 16,
            "header_size_byte": 20,
            "max_payload_size_byte": 128,
        },
        "link_count_per_device": 5,
        "topology": "RING",
    },
    "device": {
        "frequency_Hz": 1.1e9,
        "compute_chiplet_count": 2,
        "compute_chiplet": {
            "physical_core_count": 11,
            "core_count": 10,
            "process_node": "5nm",
            "core": {
                "sublane_count": 3,
                "systolic_array": {
                    "array_width": 24,
                    "array_height": 8,
                    "data_type": "int8",
                    "mac_per_cycle": 2,
                },
                "vector_unit": {
                    "vector_width": 12,
                    "flop_per_cycle": 2,
                    "data_type": "fp32",
                    "int32_count": 6,
                    "fp16_count": 0,
                    "fp32_count": 12,
                    "fp64_count": 1,
                },
                "register_file": {
                    "num_reg_files": 1,
                    "num_registers": 512,
                    "register_bitwidth": 32,
                    "num_rdwr_ports": 2,
                },
                "SRAM_KB": 96,
            },
        },
        "memory_protocol": "DDR5",
        "_memory_protocol_list": ["DDR5"],
        "io": {
            "process_node": "5nm",
            "global_buffer_MB": 12,
            "physical_global_buffer_MB": 14,
            "global_buffer_bandwidth_per_cycle_byte": 640,
            "memory_channel_physical_count": 8,
            "memory_channel_active_count": 6,
            "pin_count_per_channel": 32,
            "bandwidth_per_pin_bit": 4.8e9,
        },
        "memory": {"total_capacity_GB": 12},
    },
}

REQUIRED = [
    "device_count",
    "interconnect",
    "interconnect.topology",
    "interconnect.link_count_per_device",
    "interconnect.link",
    "interconnect.link.bandwidth_per_direction_byte",
    "interconnect.link.latency_second",
    "interconnect.link.flit_size_byte",
    "interconnect.link.header_size_byte",
    "interconnect.link.max_payload_size_byte",
    "device",
    "device.frequency_Hz",
    "device.compute_chiplet_count",
    "device.compute_chiplet.core_count",
    "device.compute_chiplet.core.sublane_count",
    "device.compute_chiplet.core.SRAM_KB",
    "device.compute_chiplet.core.systolic_array.array_width",
    "device.compute_chiplet.core.systolic_array.array_height",
    "device.compute_chiplet.core.systolic_array.data_type",
    "device.compute_chiplet.core.systolic_array.mac_per_cycle",
    "device.compute_chiplet.core.vector_unit.vector_width",
    "device.compute_chiplet.core.vector_unit.flop_per_cycle",
    "device.compute_chiplet.core.vector_unit.data_type",
    "device.io.global_buffer_MB",
    "device.io.global_buffer_bandwidth_per_cycle_byte",
    "device.io.memory_channel_active_count",
    "device.io.pin_count_per_channel",
    "device.io.bandwidth_per_pin_bit",
    "device.memory.total_capacity_GB",
]
COUNTS = [path for path in REQUIRED if path.endswith("_count") or "count_per" in path]
NUMBERS = [
    path
    for path in REQUIRED
    if path not in {"interconnect", "interconnect.link", "device"}
    and not path.endswith(("data_type", "topology"))
]


def changed(**edits: Any) -> dict[str, Any]:
    """The invented chip with fields set by path (``...``: removed; dots as ``__``)."""
    data = copy.deepcopy(INVENTED)
    for path, value in edits.items():
        *parents, last = path.split("__")
        inner = data
        for parent in parents:
            inner = inner[parent]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return data


def at(path: str, value: Any) -> dict[str, Any]:
    return changed(**{path.replace(".", "__"): value})


def write(folder: Path, data: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def message_of(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        import_llmcompass(path)
    message = str(caught.value)
    assert message.startswith("mine.json: ")
    assert "\n" not in message
    return message


def test_every_field_arrives_in_si(tmp_path: Path) -> None:
    chip, warnings = import_llmcompass(write(tmp_path, INVENTED))
    assert warnings == []
    assert (chip.name, chip.description) == ("invented-12gb-x6", "Invented (12GB)x6")
    assert (chip.cores, chip.core.lanes, chip.process) == (20, 3, "5nm")
    array = chip.core.systolic_array
    assert array is not None
    assert (array.rows, array.columns, array.macs_per_cycle) == (8, 24, {"int8": 2})
    unit = chip.core.vector_unit
    assert (unit.width, unit.flops_per_element, unit.half_rate) == (12, 2, 1)
    assert chip.core.sram == 96 * 1024
    assert (chip.clock.tensor, chip.clock.vector) == (1.1e9, 1.1e9)
    assert (chip.l2.capacity, chip.l2.bandwidth) == (12 * 2**20, 640)
    assert chip.memory.bandwidth == pytest.approx(6 * 32 * 4.8e9 / 8, rel=1e-15)
    assert (chip.memory.technology, chip.memory.capacity) == ("DDR5", 12 * 2**30)
    assert (chip.machine.chips, chip.machine.topology) == (6, "ring")
    assert chip.execution == "llmcompass-public"


def test_a_header_takes_whole_flits(tmp_path: Path) -> None:
    link = import_llmcompass(write(tmp_path, INVENTED))[0].link
    assert link is not None
    assert (link.count, link.bandwidth, link.latency) == (5, 7e9, 3e-6)
    assert (link.header, link.payload) == (32, 128)


def test_values_of_a_ga100_give_the_library_chip(tmp_path: Path) -> None:
    core = "device__compute_chiplet__core__"
    data = changed(
        name="GA100",
        device_count=4,
        interconnect__topology="FC",
        interconnect__link_count_per_device=12,
        interconnect__link__bandwidth_per_direction_byte=25e9,
        interconnect__link__bandwidth_both_directions_byte=50e9,
        interconnect__link__latency_second=8.92e-6,
        interconnect__link__header_size_byte=16,
        interconnect__link__max_payload_size_byte=256,
        device__frequency_Hz=1410e6,
        device__compute_chiplet_count=1,
        device__compute_chiplet__core_count=128,
        device__memory_protocol="HBM2e",
        device__io__global_buffer_MB=48,
        device__io__global_buffer_bandwidth_per_cycle_byte=5120,
        device__io__memory_channel_active_count=5,
        device__io__pin_count_per_channel=1024,
        device__io__bandwidth_per_pin_bit=3.2e9,
        device__memory__total_capacity_GB=80,
        **{
            f"{core}sublane_count": 4,
            f"{core}SRAM_KB": 192,
            f"{core}systolic_array__array_width": 16,
            f"{core}systolic_array__array_height": 16,
            f"{core}systolic_array__data_type": "fp16",
            f"{core}systolic_array__mac_per_cycle": 1,
            f"{core}vector_unit__vector_width": 32,
            f"{core}vector_unit__flop_per_cycle": 4,
            f"{core}vector_unit__data_type": "fp16",
        },
    )
    chip, warnings = import_llmcompass(write(tmp_path, data))
    labels = {"name", "description", "source", "process", "die_area", "floorplan"}
    library = Chip.load("llmcompass-ga100")
    assert warnings == []
    assert chip.model_dump(exclude=labels) == library.model_dump(exclude=labels)


@pytest.mark.parametrize("path", REQUIRED)
def test_a_missing_key_is_named(tmp_path: Path, path: str) -> None:
    message = message_of(write(tmp_path, at(path, ...)))
    assert message.startswith(f"mine.json: {path}")
    assert message.endswith("the key is required")


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e300, "7", True, None, [7]])
def test_a_value_that_is_no_such_number_is_named(tmp_path: Path, path: str, value: Any) -> None:
    message = message_of(write(tmp_path, at(path, value)))
    assert message.startswith(f"mine.json: {path}: {value!r} is not allowed; allowed: a ")


@pytest.mark.parametrize("path", COUNTS)
@pytest.mark.parametrize("value", [0, 2.5, 10**12])
def test_a_count_is_a_whole_number(tmp_path: Path, path: str, value: float) -> None:
    assert message_of(write(tmp_path, at(path, value))).startswith(f"mine.json: {path}: ")


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("interconnect.topology", "TORUS", "FC, RING"),
        ("interconnect.topology", ["FC"], "FC, RING"),
        ("device.compute_chiplet.core.systolic_array.data_type", "fp12", "fp16"),
        ("device.compute_chiplet.core.systolic_array.data_type", 16, "fp16"),
        ("device.compute_chiplet.core.vector_unit.data_type", "int8", "fp16, bf16, fp32"),
        ("device.memory_protocol", 5, "a text"),
        ("name", "", "a text"),
        ("device.io", [1], "a JSON object"),
        ("device", "gpu", "a JSON object"),
        ("interconnect.link", None, "a JSON object"),
    ],
)
def test_a_wrong_kind_of_value_is_named(
    tmp_path: Path, path: str, value: Any, allowed: str
) -> None:
    message = message_of(write(tmp_path, at(path, value)))
    assert message.startswith(f"mine.json: {path}: {value!r} is not allowed")
    assert allowed in message


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "3", "null", "name: yaml", "[" * 10_000])
def test_a_file_that_is_no_json_object(tmp_path: Path, text: str) -> None:
    assert message_of(write(tmp_path, text)).endswith("allowed: a JSON object")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match=r"gone\.json: no such file"):
        import_llmcompass(tmp_path / "gone.json")
    with pytest.raises(ChipsimError, match="no such file"):
        import_llmcompass(tmp_path)


def test_unknown_keys_are_named_in_warnings(tmp_path: Path) -> None:
    data = changed(colour="green", device__io__turbo={"boost": 2}, _note="a comment")
    chip, warnings = import_llmcompass(write(tmp_path, data))
    assert chip.cores == 20
    assert warnings == [
        "mine.json: device.io.turbo.boost: unknown key, ignored",
        "mine.json: colour: unknown key, ignored",
    ]


def test_two_directions_that_are_not_twice_one_are_warned_of(tmp_path: Path) -> None:
    data = at("interconnect.link.bandwidth_both_directions_byte", 9e9)
    (warning,) = import_llmcompass(write(tmp_path, data))[1]
    assert "bandwidth_both_directions_byte is not twice the 7e+09" in warning


def test_one_device_needs_no_interconnect(tmp_path: Path) -> None:
    data = changed(device_count=1, interconnect=...)
    chip, warnings = import_llmcompass(write(tmp_path, data))
    assert (chip.link, chip.machine.chips, warnings) == (None, 1, [])


def test_labels_may_be_missing(tmp_path: Path) -> None:
    data = changed(name=..., device__compute_chiplet__process_node=...)
    chip, _ = import_llmcompass(write(tmp_path, data))
    assert (chip.name, chip.process) == ("mine", None)


@pytest.mark.parametrize("name", names("chips"))
def test_a_written_chip_reads_back_equal(tmp_path: Path, name: str) -> None:
    chip = Chip.load(name)
    path = tmp_path / "mine.yaml"
    path.write_text(to_yaml(chip), encoding="utf-8")
    assert Chip.load(str(path)) == chip


@settings(deadline=None)
@given(fraction=st.floats(0.01, 100.0))
def test_a_written_cut_reads_back_equal(fraction: float) -> None:
    chip = Chip.load("a100-sxm").scaled(
        memory_bandwidth=fraction, l2=fraction, clock=fraction, sram=fraction,
        memory_capacity=fraction, link_bandwidth=fraction,
    )  # fmt: skip
    assert Chip.read(yaml.safe_load(to_yaml(chip)), "mine.yaml") == chip


@pytest.mark.parametrize("kind", sorted(SCALES))
@settings(deadline=None)
@given(value=st.floats(1e-9, 1e21))
def test_a_quantity_reads_back_to_the_last_bit(kind: str, value: float) -> None:
    assert parse(quantity_text(value, kind), kind) == value


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (80 * 2**30, "capacity", "80 GiB"),
        (80e9, "capacity", "80 GB"),
        (192 * 2**10, "capacity", "192 KiB"),
        (16.0, "capacity", "16 B"),
        (0.0, "capacity", "0 B"),
        (2039e9, "bandwidth", "2039 GB/s"),
        (25 * 2.0**30, "bandwidth", "25 GiB/s"),
        (1.41e9, "frequency", "1.41 GHz"),
        (8.92e-6, "time", "8.92 us"),
        (0.0, "time", "0 s"),
        (5120.0, "bytes_per_cycle", "5120 B/cycle"),
    ],
)
def test_a_quantity_is_written_as_people_write_it(value: float, kind: str, text: str) -> None:
    assert quantity_text(value, kind) == text


def test_a_chip_without_arrays_or_links_reads_back_equal() -> None:
    chip = Chip.load("mi210")
    core = chip.core.model_copy(update={"systolic_array": None})
    bare = chip.model_copy(update={"core": core, "link": None, "process": None})
    assert Chip.read(yaml.safe_load(to_yaml(bare)), "mine.yaml") == bare


@settings(deadline=None)
@given(name=st.text(min_size=1, max_size=30).filter(str.strip))
def test_any_text_as_a_description_reads_back_equal(name: str) -> None:
    chip = Chip.load("mi210").model_copy(update={"description": name})
    assert Chip.read(yaml.safe_load(to_yaml(chip)), "mine.yaml").description == name


def test_import_chip_writes_yaml_that_loads(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    chip, _ = import_chip(write(tmp_path, INVENTED), out)
    assert Chip.load(str(out)) == chip
