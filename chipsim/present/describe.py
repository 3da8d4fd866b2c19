"""Chips, models and execution blocks in full: fields, derived figures and sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim import serving
from chipsim.execution import GROUPS, UNITS
from chipsim.importers.chip_yaml import kinds, quantity_text
from chipsim.ops.layers import Compressed, Grouped, Latent, Linear, Scan, ShortConv
from chipsim.ops.precision import Precision
from chipsim.present.quantities import binary, format_si, grouped, percent, plain, seconds

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook
    from chipsim.execution import Execution
    from chipsim.ops.layers import Mixer
    from chipsim.ops.model import ModelSpec
    from chipsim.serving import ServingEngine

SUFFIXES = {
    "bandwidth": "bytes_per_s",
    "capacity": "bytes",
    "frequency": "hz",
    "time": "s",
    "power": "w",
    "bytes_per_cycle": "bytes_per_cycle",
    "area": "mm2",
}
"""Unit of a key in JSON, by kind of quantity."""


@dataclass(frozen=True, slots=True)
class Line:
    """A field, its value with its unit, and where it comes from."""

    field: str
    value: str
    note: str = ""


def chip_lines(chip: Chip, notes: dict[str, str]) -> list[Line]:
    """Fields of a chip, then the peaks that follow from them."""
    units = kinds(chip)
    fields = [
        Line(path, _chip_value(path, value, units), notes.get(path, ""))
        for path, value in _leaves(chip.model_dump(), "")
        if path not in ("name", "description", "source")
    ]
    return fields + [Line(name, text, how) for name, text, how in _chip_peaks(chip)]


def _chip_value(path: str, value: Any, units: dict[str, str]) -> str:
    if value is None:
        return "–"
    return quantity_text(value, units[path]) if path in units else _text(value)


def _chip_peaks(chip: Chip) -> Iterator[tuple[str, str, str]]:
    derived = chip_derived(chip)
    for name, rate in derived["tensor_flops_per_s"].items():
        yield f"{name} matrix peak", format_si(rate, "FLOP/s"), "derived"
    vector = format_si(derived["vector_flops_per_s"], "FLOP/s")
    yield "fp32 vector peak", vector, "derived"
    yield "SRAM of all cores", binary(derived["sram_bytes"]), "derived"
    if derived["l2_bandwidth_bytes_per_s"] is not None:
        rate = format_si(derived["l2_bandwidth_bytes_per_s"], "B/s")
        yield "L2 bandwidth", rate, "derived, all cores"
    if chip.link is not None:
        rate = format_si(chip.link_bandwidth, "B/s")
        yield "link bandwidth", rate, "derived, all links, one direction"
    ridge = f"{derived['flops_per_byte']:.0f} FLOP/B"
    yield "ridge", ridge, "derived: matrix peak over memory bandwidth"


def chip_derived(chip: Chip) -> dict[str, Any]:
    """Peaks of a chip in SI."""
    array = chip.core.systolic_array
    formats = array.macs_per_cycle if array else ("fp16",)
    tensor = {name: chip.tensor_flops(name) for name in formats}
    l2 = chip.l2.bandwidth
    return {
        "tensor_flops_per_s": tensor,
        "vector_flops_per_s": chip.vector_flops,
        "sram_bytes": chip.cores * chip.core.sram,
        "l2_bandwidth_bytes_per_s": None if l2 is None else l2 * chip.clock.tensor,
        "link_bandwidth_bytes_per_s": chip.link_bandwidth,
        "flops_per_byte": half_precision_flops(chip)[1] / chip.memory.bandwidth,
    }


def half_precision_flops(chip: Chip) -> tuple[str, float]:
    """The 16-bit format of the matrix units (or their first one), and its peak, FLOP/s."""
    array = chip.core.systolic_array
    known = list(array.macs_per_cycle) if array else ["fp16"]
    name = next((half for half in ("fp16", "bf16") if half in known), known[0])
    return name, chip.tensor_flops(name)


def chip_record(chip: Chip) -> dict[str, Any]:
    """A chip in SI, units in the keys, and its derived peaks."""
    return {"kind": "chip", **_suffixed(chip.model_dump(), "", kinds(chip))} | {
        "derived": chip_derived(chip)
    }


def model_lines(model: ModelSpec, notes: dict[str, str]) -> list[Line]:
    """Fields of a model, then the counts that follow from them."""
    fields = [
        Line(path, "–" if value is None else _text(value), notes.get(path, ""))
        for path, value in _model_leaves(model)
    ]
    derived = model_derived(model)
    kv = f"{grouped(round(derived['kv_bytes_per_token_fp16']))} B"
    return [
        *fields,
        Line("attention", derived["attention"], "derived"),
        Line("parameters", grouped(derived["parameters"]), "derived"),
        Line("active parameters", grouped(derived["active_parameters"]), "derived"),
        Line("parameters of a layer", grouped(derived["layer_parameters"]), "derived"),
        Line("weights in fp16", format_si(derived["weights_bytes_fp16"], "B"), "derived"),
        Line("KV of a token in fp16", kv, "derived, all layers"),
    ]


def _model_leaves(model: ModelSpec) -> Iterator[tuple[str, Any]]:
    """Fields of a model file; of its parts those that say something."""
    fields = model.model_dump(exclude={"name", "description", "source", "layer_order"})
    kinds = {kind.pop("name"): kind for kind in fields.pop("layer_kinds")}
    for path, value in _leaves(fields, ""):
        if value is not None or "." not in path:
            yield path, value
    for path, value in _leaves(kinds, "layer_kinds."):
        if value is not None and value != ("prefill", "decode"):
            yield path, value
    runs = [f"{run.times} x {', '.join(run.kinds)}" for run in model.layer_order]
    if runs:
        yield "layer_order", "; ".join(runs)


def attention_label(model: ModelSpec) -> str:
    """Kinds of attention that a model has, joined with a plus.

    >>> from chipsim.ops.model import ModelSpec
    >>> [attention_label(ModelSpec.load(name)) for name in ("gemma-3-27b", "deepseek-v3.2")]
    ['GQA + window', 'sparse MLA']
    """
    mixers = [group.layer.mixer for group in model.groups]
    labels = {_mixer_label(mixer): None for mixer in mixers if mixer is not None}
    if any(isinstance(mixer, Grouped) and mixer.window for mixer in mixers):
        labels["window"] = None
    if any(isinstance(mixer, Grouped) and mixer.beside for mixer in mixers):
        labels["SSM"] = None
    return " + ".join(labels)


def _mixer_label(mixer: Mixer) -> str:
    if isinstance(mixer, Latent):
        return "MLA" if mixer.indexer is None else "sparse MLA"
    if isinstance(mixer, Compressed):
        return "compressed MQA" if mixer.ratio else "window MQA"
    if isinstance(mixer, Linear):
        return "SSM" if mixer.rule == "ssm" else "linear"
    if isinstance(mixer, Scan | ShortConv):
        return "SSM" if isinstance(mixer, Scan) else "convolution"
    if mixer.heads == mixer.kv_heads:
        return "MHA"
    return "MQA" if mixer.kv_heads == 1 else "GQA"


def model_derived(model: ModelSpec) -> dict[str, Any]:
    """Counts of a model."""
    return {
        "attention": attention_label(model),
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "layer_parameters": model.layer_parameters,
        "weights_bytes_fp16": 2.0 * model.parameters,
        "kv_bytes_per_token_fp16": model.kv_bytes_per_token(Precision()),
    }


def model_record(model: ModelSpec) -> dict[str, Any]:
    """A model and its derived counts."""
    return {"kind": "model", **model.model_dump(mode="json"), "derived": model_derived(model)}


def execution_lines(execution: Execution, notes: dict[str, str]) -> list[Line]:
    """Factors of an execution block with what each means."""
    return [
        Line(path, _factor(path, value), notes.get(path, "") or _meaning(path))
        for path, value in _leaves(execution.model_dump(), "")
        if path not in ("name", "source", "fitted.to", "fitted.command", "fitted.report")
        and path != "fitted"
    ]


def _factor(path: str, value: Any) -> str:
    section = path.split(".", maxsplit=1)[0]
    if value is None:
        return "unlimited" if path == "core_draw" else "–"
    if section in ("launch", "link"):
        return seconds(value)
    if section == "sustained":
        return percent(value)
    return f"{plain(value)} B/cycle" if path == "core_draw" else _text(value)


def _meaning(path: str) -> str:
    return {
        "launch": "fixed time of one kernel",
        "link": "what a communication library adds",
        "sustained": "share of the peak",
        "overlap": "0 serial … 1 behind compute",
        "core_draw": "what one core can draw from memory",
        "exp_flops": "vector FLOP of one exponential",
        "l2_residency": "part of L2 that may keep an operand",
    }.get(path.split(".", maxsplit=1)[0], "")


def execution_record(execution: Execution) -> dict[str, Any]:
    """An execution block in SI, units in the keys."""
    fields = execution.model_dump()
    return {"kind": "execution", **_suffixed(fields, "", _units(fields, UNITS, GROUPS))}


def engine_record(engine: ServingEngine) -> dict[str, Any]:
    """A serving engine in SI, units in the keys."""
    fields = engine.model_dump()
    return {"kind": "engine", **_suffixed(fields, "", _units(fields, serving.UNITS, {}))}


def engine_lines(engine: ServingEngine, notes: dict[str, str]) -> list[Line]:
    """Factors of a serving engine with what each means."""
    fields = engine.model_dump(exclude={"name", "source", "fitted"})
    units = _units(fields, serving.UNITS, {})
    return [
        Line(path, _chip_value(path, value, units), notes.get(path, "") or _adds(path))
        for path, value in _leaves(fields, "")
    ]


def _adds(path: str) -> str:
    return {
        "kernel": "host time to issue one kernel",
        "libraries": "part of what the chip's block sustains",
        "prompts": "host time of a step with prompts",
        "sequence": "host time of each sequence",
        "exchange": "time of a collective over the block's",
        "long_exchange": "the same again, from long_from on",
    }.get(path.rsplit(".", maxsplit=1)[-1], "")


def _units(
    fields: dict[str, Any], names: dict[str, str], groups: dict[str, str]
) -> dict[str, str]:
    """Kinds of unit by the path of a field: its group's, or its own."""
    found: dict[str, str] = {}
    for path, _ in _leaves(fields, ""):
        *parents, leaf = path.split(".")
        kind = groups.get(parents[-1] if parents else "") or names.get(leaf)
        found |= {path: kind} if kind else {}
    return found


PRICE_UNITS = {
    "memory": (2.0**30, "USD/GiB"),
    "hourly": (1.0, "USD/hour"),
    "per_die_area": (1.0, "USD/mm2"),
}
"""Scale and unit of a price by a key in its path; else US dollars."""


def price_lines(book: PriceBook, notes: dict[str, str]) -> list[Line]:
    """Prices of a book with their sources; a range as its ends."""
    return [
        Line(path, text, notes.get(path, ""))
        for path, text in _prices(book.model_dump(by_alias=True), "")
        if path not in ("name", "description", "source")
    ]


def _prices(fields: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        path = f"{prefix}{key}"
        items = value if isinstance(value, list | tuple) else ()
        if isinstance(value, dict) and value.keys() == {"low", "mid", "high"}:
            yield path, _price(path, value)
        elif isinstance(value, dict):
            yield from _prices(value, f"{path}.")
        elif items and isinstance(items[0], dict):
            for item in items:
                yield from _prices(item, f"{path}.{item.get('name', '')}.")
        elif value not in (None, "", ()):
            yield path, _text(value)


def _price(path: str, amount: dict[str, float]) -> str:
    known = (unit for key, unit in PRICE_UNITS.items() if key in path.split("."))
    scale, unit = next(known, (1.0, "USD"))
    low, mid, high = (plain(amount[end] * scale) for end in ("low", "mid", "high"))
    return f"{mid} {unit}" if low == high else f"{mid} {unit} ({low} to {high})"


def _leaves(fields: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _suffixed(fields: dict[str, Any], prefix: str, kinds: dict[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in fields.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            out[key] = _suffixed(value, f"{path}.", kinds)
        elif path in kinds:
            out[f"{key}_{SUFFIXES[kinds[path]]}"] = value
        else:
            out[key] = value
    return out


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return plain(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return str(value)
