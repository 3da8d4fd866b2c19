"""A model that was read from another tool's description: what it holds, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipsim.present.describe import Line
from chipsim.present.quantities import grouped

if TYPE_CHECKING:
    from chipsim.importers import Imported


def imported_record(imported: Imported) -> dict[str, Any]:
    """An imported model as JSON writes it; bytes are those of the checkpoint's formats."""
    model = imported.model
    return {
        "name": model.name,
        "architecture": imported.architecture,
        "layers": model.layers,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "kv_bytes_per_token": imported.kv_bytes_per_token,
        "precision": imported.precision.model_dump(exclude_none=True),
        "warnings": list(imported.warnings),
    }


def imported_lines(imported: Imported) -> list[Line]:
    """The same as lines of a table."""
    model, formats = imported.model, imported.precision
    kinds = ", ".join(f"{group.count} {group.layer.name}" for group in model.groups)
    return [
        Line("layers", str(model.layers), kinds if len(model.groups) > 1 else ""),
        Line("parameters", grouped(model.parameters)),
        Line("active parameters", grouped(model.active_parameters), "of one token"),
        Line(
            "weights, activations",
            f"{formats.weights}, {formats.activations}",
            f"routed experts in {formats.experts}" if formats.experts else "",
        ),
        Line("KV per token", f"{imported.kv_bytes_per_token:,.0f} B", f"in {formats.kv}"),
    ]
