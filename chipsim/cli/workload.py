"""``workload``: what a trace or a generated workload looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import AsJson, Out
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.workload import Workload

ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".parquet", ".json", ".yaml")


def workload(
    name: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A trace, a name or a YAML file.")
    ],
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="R", help="Requests/s; of agents: sessions/s."),
    ] = None,
    requests: Annotated[
        int | None, typer.Option("--requests", metavar="N", help="How many.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="TIME", help="Until when: '600 s'.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="S", help="Of what is drawn.")
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            "--arrivals",
            metavar="KIND",
            help="poisson, gamma, deterministic, gaps or diurnal, instead of its own.",
        ),
    ] = None,
    cv: Annotated[
        float | None, typer.Option("--cv", metavar="X", help="Of gamma gaps: 1 is Poisson.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Of a trace; detected unless given."),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            "--spread", metavar="WAY", help="even or random: inside bins of equal time stamps."
        ),
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Statistics and pictures of a trace or a workload.

    --out .html, .png, .svg, .pdf: a figure; .csv, .parquet: its requests; .json: these
    statistics; .yaml: a trace condensed into quantiles, which every command takes.
    """
    from chipsim.cluster.workload_spec import load_workload

    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    made = load_workload(
        name,
        rate=rate,
        requests=requests,
        duration_s=None if duration is None else _time(duration),
        seed=seed,
        arrivals=_arrivals(arrivals, cv),
        format=kind,
        spread=_way(spread),
    )
    figures = made.summary()
    if out is not None:
        _write(made, figures, out)
    if as_json:
        emit(figures)
    else:
        from chipsim.present.workload import summary_tables

        show(*summary_tables(figures))


def _time(text: str) -> float:
    from chipsim.units import parse

    try:
        return parse(text, "time")
    except ValueError:
        raise ConfigError(
            "--duration", "", text, "a time with its unit, e.g. '600 s'"
        ) from None


def _arrivals(kind: str | None, cv: float | None) -> Any:
    from chipsim.cluster.arrivals import KINDS, Arrivals

    if cv is not None:
        if kind not in (None, "gamma"):
            raise ConfigError("--cv", "", cv, "with --arrivals gamma")
        return Arrivals.build("--cv", kind="gamma", cv=cv)
    if kind is not None and kind not in KINDS:
        raise ConfigError("--arrivals", "", kind, ", ".join(KINDS))
    return kind


def _way(spread: str | None) -> Any:
    from chipsim.cluster.rows import SPREADS

    if spread is not None and spread not in SPREADS:
        raise ConfigError("--spread", "", spread, ", ".join(SPREADS))
    return spread


def _write(made: Workload, figures: dict[str, Any], out: str) -> None:
    from chipsim.present.html import FIGURES, write_figure

    if Path(out).suffix in FIGURES:
        from chipsim.present.workload import cells, workload_figure

        notes = [f"source: {' '.join(made.source.split())}"]
        write_figure(workload_figure(made, figures), out, cells(figures), notes)
    else:
        from chipsim.explore.store import write_whole

        write_whole(Path(out), _content(made, figures, Path(out)))
    remark(f"wrote {out}")


def _content(made: Workload, figures: dict[str, Any], out: Path) -> bytes:
    """The bytes of a table, of the statistics or of a description."""
    if out.suffix == ".csv":
        return made.csv().encode()
    if out.suffix == ".parquet":
        written: bytes = made.frame().to_parquet(None, index=False)
        return written
    if out.suffix == ".json":
        import json

        return (json.dumps(figures, indent=2, allow_nan=False) + "\n").encode()
    from chipsim.cluster.condense import as_yaml, condense

    spec = condense(made).model_copy(update={"name": out.stem})
    return as_yaml(spec, f"Quantiles of {made.name}; its own gaps: --arrivals gaps.").encode()
