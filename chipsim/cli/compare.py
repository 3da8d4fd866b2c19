"""``compare``: two chips, two execution blocks, or an estimate and a reference run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import (
    AsJson,
    Context,
    Formats,
    LayersOnly,
    ModelName,
    Out,
    PhaseKind,
    Plan,
    Price,
    Prices,
    Prompt,
    Tp,
    read_book,
    read_phase,
    read_plan,
)
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.explore.compare import Comparison
    from chipsim.ops.phase import Phase

A = Annotated[str, typer.Argument(metavar="A", help="A chip, or an execution block.")]
B = Annotated[
    str,
    typer.Argument(
        metavar="B",
        help="As A; or a run to set beside A: author-tables, public-layer, silicon-layer, or "
        "a CSV file of LLMCompass.",
    ),
]
ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".parquet", ".json")


def compare(
    a: A,
    b: B,
    model: ModelName,
    phase: PhaseKind,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Sequences.")] = 1,
    prompt: Prompt = None,
    context: Context = None,
    chip: Annotated[
        str | None, typer.Option("--chip", metavar="CHIP", help="Chip of two blocks.")
    ] = None,
    execution_a: Annotated[
        str | None, typer.Option("--execution-a", metavar="BLOCK", help="Block of A.")
    ] = None,
    execution_b: Annotated[
        str | None, typer.Option("--execution-b", metavar="BLOCK", help="Block of B.")
    ] = None,
    tp: Tp = None,
    plan: Plan = None,
    formats: Formats = "fp16",
    layers_only: LayersOnly = False,
    prices: Prices = "spad-2025",
    price: Price = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Two runs operator by operator, why they differ, and what they cost and draw."""
    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    asked = read_phase(phase, batch, prompt, context)
    split = read_plan(tp, plan)
    chip_a, block_a = _side(a, chip, execution_a)
    if _is_run(b):
        if price:
            raise ConfigError(
                "--price", "", price[0], "two chips or blocks: a run has no price"
            )
        from chipsim.validation.against import compare_reference

        found = compare_reference(b, chip_a, model, asked, split.tp, block_a)
        about = _about(model, asked, split, "one layer")
    else:
        from chipsim.explore.compare import compare_phases

        chip_b, block_b = _side(b, chip, execution_b)
        found = compare_phases(
            model, asked, split, chip_a, block_a, chip_b, block_b,
            precision=formats, layers_only=layers_only, prices=read_book(prices, price),
        )  # fmt: skip
        about = _about(model, asked, split, "layers only" if layers_only else "")
        about = f"{about} · {_blocks(chip_a, block_a, chip_b, block_b)}"
    if out is not None:
        _write(found, out, about)
    _print(found, about, as_json=as_json)


def _is_run(name: str) -> bool:
    from chipsim.validation.against import RUNS

    return name in RUNS or name.endswith(".csv")


def _side(name: str, chip: str | None, execution: str | None) -> tuple[str, str | None]:
    """Chip and block of an argument that is either."""
    from chipsim.arch_configs import names
    from chipsim.errors import UnknownNameError

    if name in names("executions"):
        if chip is None:
            raise ChipsimError(f"compare: {name} is an execution block; give --chip")
        if execution is not None:
            raise ChipsimError(f"compare: {name} is a block already, and another is given")
        return chip, name
    if name not in names("chips") and not name.endswith((".yaml", ".yml")) and "/" not in name:
        known = [*names("chips"), *names("executions")]
        raise UnknownNameError("chip or execution block", name, known)
    return name, execution


def _blocks(chip_a: str, block_a: str | None, chip_b: str, block_b: str | None) -> str:
    """The two blocks; says so where one has launches and losses and the other has none."""
    from chipsim.chip import Chip

    a = block_a or Chip.load(chip_a).execution
    b = block_b or Chip.load(chip_b).execution
    if a != b and "ideal" in (a, b):
        remark(
            f"{chip_a} runs under {a} and {chip_b} under {b}: one is an ideal machine, so this "
            "is not like for like; --execution-a and --execution-b choose"
        )
    return f"block {a}" if a == b else f"blocks {a} and {b}"


def _about(model: str, phase: Phase, plan: Any, layers: str) -> str:
    from chipsim import __version__
    from chipsim.present.provenance import phase_text, plan_text

    parts = [model, phase_text(phase), plan_text(plan), layers, f"chipsim {__version__}"]
    return " · ".join(part for part in parts if part)


def _write(found: Comparison, out: str, about: str) -> None:
    if Path(out).suffix in (".csv", ".parquet", ".json"):
        from chipsim.explore.store import save

        save(found, out)
    else:
        from chipsim.present.compare import compare_figure
        from chipsim.present.html import write_figure
        from chipsim.present.tables import compare_cells

        write_figure(compare_figure(found, about), out, compare_cells(found))
    remark(f"wrote {out}")


def _print(found: Comparison, about: str, *, as_json: bool) -> None:
    if as_json:
        from chipsim.present.records import compare_record

        emit(compare_record(found, about))
        return
    from chipsim.present.cost import compare_lines
    from chipsim.present.headline import compare_headline
    from chipsim.present.tables import compare_table, footer_line, heading

    show(heading(compare_headline(found)), footer_line(about), compare_table(found))
    show(*map(footer_line, compare_lines(found)))
