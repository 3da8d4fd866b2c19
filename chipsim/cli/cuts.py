"""``cuts``: how much slower a phase is when a chip loses a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import (
    AsJson,
    ChipName,
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
from chipsim.cli.output import console, emit, remark, show
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.explore.cuts import Cut, CutsResult

Progress = Callable[[int, int], None]

Resource = Annotated[
    list[str],
    typer.Option(
        "--resource",
        metavar="NAME",
        help="memory_bandwidth, memory_capacity, cores, systolic_array, vector_width, clock, "
        "l2, sram or link_bandwidth; twice: the grid of both.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--values", metavar="LIST", help='What is left: "1000 GB/s, 1500 GB/s".'),
]
Fractions = Annotated[
    list[str] | None,
    typer.Option("--fractions", metavar="LIST", help="Parts of the uncut chip: 1,0.9,0.8."),
]
Held = Annotated[
    str | None,
    typer.Option(
        "--held",
        metavar="NAME=PART,...",
        help="What every point keeps of other resources: cores=0.5,l2=0.8.",
    ),
]
Blocks = Annotated[
    list[str] | None,
    typer.Option(
        "--execution",
        metavar="BLOCK",
        help="Execution block, the chip's own unless given; again: one more curve.",
    ),
]


def cuts(
    chip: ChipName,
    model: ModelName,
    phase: PhaseKind,
    resource: Resource,
    batch: Annotated[
        str, typer.Option("--batch", metavar="N|max", help="Sequences; max: the most that fit.")
    ] = "1",
    prompt: Prompt = None,
    context: Context = None,
    values: Values = None,
    fractions: Fractions = None,
    held: Held = None,
    itl: Annotated[
        str | None, typer.Option("--itl", metavar="TIME", help="With --batch max: 50ms.")
    ] = None,
    tp: Tp = None,
    plan: Plan = None,
    formats: Formats = "fp16",
    execution: Blocks = None,
    layers_only: LayersOnly = False,
    prices: Prices = "spad-2025",
    price: Price = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Slowdown of a phase when a chip loses a resource.

    Two resources give the grid of both.

    --values and --fractions go with the --resource in the same place.
    """
    from chipsim.explore.cuts import cuts as run_cuts

    _check_ending(out)
    sequences, kind = _batch(batch)
    asked = read_phase(phase, sequences, prompt, context)
    axes = _axes(resource, values, fractions)
    options: dict[str, Any] = {
        "plan": read_plan(tp, plan),
        "precision": _precision(formats),
        "layers_only": layers_only,
        "batch": kind,
        "itl_s": None if itl is None else _time(itl),
        "prices": read_book(prices, price),
        "held": _held(held),
    }
    runs = []
    blocks: list[str | None] = [*execution] if execution else [None]
    for block in blocks:
        with _progress() as progress:
            runs.append(
                run_cuts(
                    chip, model, asked, axes, execution=block, progress=progress, **options
                )
            )
    if out is not None:
        _write(runs, out)
    _print(runs, as_json=as_json)


def _batch(text: str) -> tuple[int, str]:
    if text == "max":
        return 1, "max"
    if not (text.isascii() and text.lstrip("-").isdecimal()):
        raise ConfigError("--batch", "", text, "a whole number from 1, or max")
    return int(text), "fixed"


def _time(text: str) -> float:
    from chipsim.units import parse

    try:
        return parse(text, "time")
    except ValueError:
        raise ConfigError("--itl", "", text, "a time with its unit, e.g. '50 ms'") from None


def _precision(formats: str) -> Any:
    from chipsim.ops.precision import Precision

    return Precision.parse(formats)


def _held(text: str | None) -> dict[str, float]:
    """``cores=0.5,l2=0.8``."""
    parts = [piece.partition("=") for piece in (text or "").split(",") if piece.strip()]
    try:
        return {name.strip(): float(value) for name, _, value in parts}
    except ValueError:
        allowed = "resources and parts of them: cores=0.5,l2=0.8"
        raise ConfigError("--held", "", text, allowed) from None


def _axes(
    resources: list[str], values: list[str] | None, fractions: list[str] | None
) -> list[Cut]:
    """Each resource with its own list, in the order of the command line."""
    from chipsim.explore.cuts import Cut

    lists = [("values", text) for text in values or []]
    lists += [("fractions", text) for text in fractions or []]
    if len(lists) != len(resources) or (values and fractions):
        raise ChipsimError(
            f"cuts: {len(resources)} --resource with {len(values or [])} --values and "
            f"{len(fractions or [])} --fractions; give each resource one list, all of a kind"
        )
    return [
        Cut(name, **{kind: text}) for name, (kind, text) in zip(resources, lists, strict=True)
    ]


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on a terminal, nothing in a pipe."""
    out = console(error=True)
    if not out.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress("cuts", *columns, console=out, transient=True) as bar:
        task = bar.add_task("cuts", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _check_ending(out: str | None) -> None:
    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")


ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".parquet", ".json")


def _write(runs: list[CutsResult], out: str) -> None:
    if Path(out).suffix in (".csv", ".parquet", ".json"):
        from chipsim.explore.store import save

        if len(runs) > 1:
            raise ConfigError("--execution", "", len(runs), "one, to write a table")
        save(runs[0], out)
    else:
        from chipsim.present.cuts import cuts_figure
        from chipsim.present.html import write_figure
        from chipsim.present.records import cuts_rows
        from chipsim.present.tables import cuts_cells

        figure = cuts_figure(runs, _references(runs[0]))
        cells = cuts_cells(cuts_rows(runs), largest=runs[0].setup.batch == "max")
        write_figure(figure, out, cells, _notes(runs))
    remark(f"wrote {out}")


def _references(run: CutsResult) -> list[Any]:
    from chipsim.validation.spad import reference_points

    return list(reference_points(run.model.name, run.chip.name, run.phase, run.resources[0]))


def _notes(runs: list[CutsResult]) -> list[str]:
    from chipsim.present.cost import money_line
    from chipsim.present.provenance import footer

    notes = [footer(run.chip.name, run.execution) for run in runs]
    return [money_line(runs[0]), *notes]


def _print(runs: list[CutsResult], *, as_json: bool) -> None:
    from chipsim.present.records import cuts_record

    if as_json:
        emit(cuts_record(runs))
        return
    from chipsim.present.headline import headline, subtitle
    from chipsim.present.records import cuts_rows
    from chipsim.present.tables import cuts_table, footer_line, heading

    show(heading(headline(runs[0])), footer_line(subtitle(*runs)))
    largest = runs[0].setup.batch == "max"
    show(cuts_table(cuts_rows(runs), largest=largest), *map(footer_line, _notes(runs)))
