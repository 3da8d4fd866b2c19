"""Read LLMCompass's JSON configuration: its device, interconnect and memory as a `Chip`.

Fields and their reading are those of its ``configs/*.json`` and
``design_space_exploration/dse.py`` (github.com/PrincetonUniversity/LLMCompass): KB, MB
and GB are binary, the clock is one, a header is rounded up to whole flits.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from chipsim.chip import Chip
from chipsim.importers.chip_yaml import to_yaml
from chipsim.importers.document import Document
from chipsim.ops.formats import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["import_llmcompass", "to_yaml"]

EXECUTION = "llmcompass-public"
"""The block that holds what LLMCompass assumes for every JSON file."""

TOPOLOGIES = {"FC": "fully-connected", "RING": "ring"}
VECTOR_FORMATS = ("fp16", "bf16", "fp32")

_CORE = "device.compute_chiplet.core"
_LINK = "interconnect.link"
_READ = {
    "name",
    "device_count",
    "interconnect.topology",
    "interconnect.link_count_per_device",
    f"{_LINK}.bandwidth_per_direction_byte",
    f"{_LINK}.bandwidth_both_directions_byte",
    f"{_LINK}.latency_second",
    f"{_LINK}.flit_size_byte",
    f"{_LINK}.header_size_byte",
    f"{_LINK}.max_payload_size_byte",
    "device.frequency_Hz",
    "device.compute_chiplet_count",
    "device.compute_chiplet.core_count",
    "device.compute_chiplet.process_node",
    f"{_CORE}.sublane_count",
    f"{_CORE}.SRAM_KB",
    f"{_CORE}.systolic_array.array_width",
    f"{_CORE}.systolic_array.array_height",
    f"{_CORE}.systolic_array.data_type",
    f"{_CORE}.systolic_array.mac_per_cycle",
    f"{_CORE}.vector_unit.vector_width",
    f"{_CORE}.vector_unit.flop_per_cycle",
    f"{_CORE}.vector_unit.data_type",
    "device.memory_protocol",
    "device.io.global_buffer_MB",
    "device.io.global_buffer_bandwidth_per_cycle_byte",
    "device.io.memory_channel_active_count",
    "device.io.pin_count_per_channel",
    "device.io.bandwidth_per_pin_bit",
    "device.memory.total_capacity_GB",
}
_AREA_ONLY = {
    f"{_LINK}.name",
    "device.compute_chiplet.physical_core_count",
    "device.io.process_node",
    "device.io.physical_global_buffer_MB",
    "device.io.memory_channel_physical_count",
    *(f"{_CORE}.vector_unit.{kind}_count" for kind in ("int32", "fp16", "fp32", "fp64")),
    *(
        f"{_CORE}.register_file.{key}"
        for key in ("num_reg_files", "num_registers", "register_bitwidth", "num_rdwr_ports")
    ),
}
"""Labels, and fields of LLMCompass's area model, which its latencies do not depend on."""


def import_llmcompass(path: str | Path) -> tuple[Chip, list[str]]:
    """Read a chip from LLMCompass's own JSON.

    Parameters
    ----------
    path : str or Path
        A file like those of its ``configs/``.

    Returns
    -------
    chip : Chip
        In the execution block ``llmcompass-public``.
    warnings : list of str
        Keys that are not LLMCompass's, and values that contradict one another.

    Raises
    ------
    ConfigError
        Names the file, the field's path, its value and what is allowed.
    ChipsimError
        There is no such file.
    """
    document = Document(path)
    fields: dict[str, Any] = {
        **_labels(document),
        "cores": _cores(document),
        "core": _core(document),
        "clock": dict.fromkeys(("tensor", "vector"), document.number("device.frequency_Hz")),
        **_memories(document),
        **_machine(document),
    }
    return Chip.build(document.name, **fields), _warnings(document)


def _labels(document: Document) -> dict[str, Any]:
    name = document.text("name", document.stem)
    return {
        "name": re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "chip",
        "description": name,
        "source": f"LLMCompass configuration {document.name}",
        "process": document.text("device.compute_chiplet.process_node", "") or None,
        "execution": EXECUTION,
    }


def _cores(document: Document) -> int:
    chiplets = document.whole("device.compute_chiplet_count")
    return chiplets * document.whole("device.compute_chiplet.core_count")


def _core(document: Document) -> dict[str, Any]:
    return {
        "lanes": document.whole(f"{_CORE}.sublane_count"),
        "systolic_array": _array(document),
        "vector_unit": _vector_unit(document),
        "sram": document.number(f"{_CORE}.SRAM_KB") * 2**10,
    }


def _array(document: Document) -> dict[str, Any]:
    at = f"{_CORE}.systolic_array"
    operand = document.choice(f"{at}.data_type", FORMATS)
    # Its model knows a format by its bytes only: both 16-bit formats run alike.
    formats = ("fp16", "bf16") if operand in ("fp16", "bf16") else (operand,)
    return {
        "rows": document.whole(f"{at}.array_height"),
        "columns": document.whole(f"{at}.array_width"),
        "macs_per_cycle": dict.fromkeys(formats, document.number(f"{at}.mac_per_cycle")),
    }


def _vector_unit(document: Document) -> dict[str, Any]:
    """Its rate holds for its one format; a 16-bit one is taken as twice that of fp32."""
    at = f"{_CORE}.vector_unit"
    element = document.choice(f"{at}.data_type", VECTOR_FORMATS)
    half_rate = 1.0 if element == "fp32" else 2.0
    return {
        "width": document.whole(f"{at}.vector_width"),
        "flops_per_element": document.number(f"{at}.flop_per_cycle") / half_rate,
        "half_rate": half_rate,
    }


def _memories(document: Document) -> dict[str, Any]:
    io = "device.io"
    bits = (
        document.whole(f"{io}.memory_channel_active_count")
        * document.whole(f"{io}.pin_count_per_channel")
        * document.number(f"{io}.bandwidth_per_pin_bit")
    )
    return {
        "l2": {
            "capacity": document.number(f"{io}.global_buffer_MB") * 2**20,
            "bandwidth": document.number(f"{io}.global_buffer_bandwidth_per_cycle_byte"),
        },
        "memory": {
            "technology": document.text("device.memory_protocol", "unnamed"),
            "bandwidth": bits / 8,
            "capacity": document.number("device.memory.total_capacity_GB") * 2**30,
        },
    }


def _machine(document: Document) -> dict[str, Any]:
    chips = document.whole("device_count")
    if chips == 1 and not document.has("interconnect"):
        return {"machine": {"chips": 1}}
    topology = TOPOLOGIES[document.choice("interconnect.topology", TOPOLOGIES)]
    return {"link": _link(document), "machine": {"chips": chips, "topology": topology}}


def _link(document: Document) -> dict[str, Any]:
    flit = document.number(f"{_LINK}.flit_size_byte")
    header = document.number(f"{_LINK}.header_size_byte", least=0)
    return {
        "count": document.whole("interconnect.link_count_per_device"),
        "bandwidth": document.number(f"{_LINK}.bandwidth_per_direction_byte"),
        "latency": document.number(f"{_LINK}.latency_second", least=0),
        "header": math.ceil(header / flit) * flit,
        "payload": document.number(f"{_LINK}.max_payload_size_byte"),
    }


def _warnings(document: Document) -> list[str]:
    known = _READ | _AREA_ONLY
    unknown = [
        path
        for path in document.leaves()
        if path not in known and not any(key.startswith("_") for key in path.split("."))
    ]
    found = [f"{document.name}: {path}: unknown key, ignored" for path in unknown]
    both = f"{_LINK}.bandwidth_both_directions_byte"
    if document.has(both):
        one = document.number(f"{_LINK}.bandwidth_per_direction_byte")
        if document.number(both) != 2 * one:
            found.append(
                f"{document.name}: {both} is not twice the {one:g} of one "
                "direction; the latter is used"
            )
    return found
