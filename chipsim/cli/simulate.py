"""``simulate``: a cluster serves a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation
    from chipsim.cluster.scenario import Scenario

ScenarioName = Annotated[str, typer.Argument(metavar="SCENARIO", help="A name or a YAML file.")]
RateOption = Annotated[
    float | None, typer.Option("--rate", metavar="R", help="Requests/s, instead of its own.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", metavar="S", help="Of the workload and of chance.")
]
DurationOption = Annotated[
    str | None, typer.Option("--duration", metavar="TIME", help="Arrivals until then: '600 s'.")
]
RequestsOption = Annotated[
    int | None, typer.Option("--requests", metavar="N", help="How many, instead of its own.")
]
InstancesOption = Annotated[
    str | None,
    typer.Option("--instances", metavar="POOL=N,…", help="Instances of pools."),
]


def simulate(
    scenario: ScenarioName,
    rate: RateOption = None,
    duration: DurationOption = None,
    requests: RequestsOption = None,
    seed: SeedOption = None,
    instances: InstancesOption = None,
    energy: Annotated[bool, typer.Option("--energy", help="Joules of every step too.")] = False,
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline", metavar="FILE.json", help="Steps and transfers, for Perfetto."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FOLDER", help="requests.parquet, summary.json, simulation.html."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve a workload with pools of chips: TTFT, ITL, E2E, objective, utilisation, cost."""
    from chipsim.cluster.simulate import Cluster

    chosen = changed(scenario, rate, duration, requests, seed, instances)
    folder = None if out is None else _folder(out)
    cluster = Cluster(chosen, with_energy=energy)
    run = cluster.run(log_steps=folder is not None or timeline is not None)
    figures = run.summary()
    if timeline is not None:
        from chipsim.cluster.timeline import chrome_json
        from chipsim.explore.store import write_whole

        write_whole(Path(timeline), chrome_json(run))
        remark(f"wrote {timeline}")
    if folder is not None:
        _write(run, figures, folder)
    if as_json:
        emit(figures)
    else:
        from chipsim.present.simulation import summary_tables

        show(*summary_tables(figures))


def changed(
    name: str,
    rate: float | None,
    duration: str | None,
    requests: int | None,
    seed: int | None,
    instances: str | None,
) -> Scenario:
    """A scenario with what the command line says instead."""
    from chipsim.cluster.scenario import Scenario
    from chipsim.units import parse

    until = None
    if duration is not None:
        try:
            until = parse(duration, "time")
        except ValueError:
            allowed = "a time with its unit, e.g. '600 s'"
            raise ConfigError("--duration", "", duration, allowed) from None
    return Scenario.load(name).changed(
        rate=rate,
        duration=until,
        requests=requests,
        workload_seed=seed,
        seed=seed,
        instances=_counts(instances),
    )


def _counts(text: str | None) -> dict[str, int] | None:
    """``prefill=8,decode=17``."""
    if text is None:
        return None
    counts: dict[str, int] = {}
    for part in text.split(","):
        pool, _, count = part.partition("=")
        if not (count.isascii() and count.isdecimal()):
            raise ConfigError("--instances", pool.strip(), count, "a whole number: pool=N")
        if pool.strip() in counts:
            raise ConfigError("--instances", pool.strip(), count, "each pool once")
        counts[pool.strip()] = int(count)
    return counts


def _folder(out: str) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ConfigError("--out", "", out, "a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(run: Simulation, figures: dict[str, Any], folder: Path) -> None:
    import json

    from chipsim.cluster.timeline import series
    from chipsim.explore.opened import REQUESTS
    from chipsim.explore.store import save, write_whole
    from chipsim.present.html import write_figure
    from chipsim.present.simulation import simulation_figure

    save(run, folder / REQUESTS)
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "summary.json", (text + "\n").encode())
    over_time = series(run)
    written: bytes = over_time.to_parquet(None, index=False)
    write_whole(folder / "series.parquet", written)
    write_figure(simulation_figure(run, over_time), str(folder / "simulation.html"), [], [])
    remark(f"wrote {folder}")
