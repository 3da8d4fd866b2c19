"""``plan``: the best use of chips that are owned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.emitting import EmitOption, read_target
from chipsim.cli.options import AsJson, MaybeFormats, Out, whole_numbers
from chipsim.cli.output import emit, remark, show
from chipsim.cli.provision import JournalOption, SeedsOption
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.ranking import Ranking
    from chipsim.cluster.scenario import Scenario

ENDINGS = (".csv", ".parquet", ".json")


def plan(
    inventory: Annotated[
        str,
        typer.Option("--inventory", metavar="CHIP:N,…", help="Chips that there are."),
    ],
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="Model, workload, objective: name or YAML."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Without a scenario, or its.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="What is served.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="R", help="Requests/s (--goal latency).")
    ] = None,
    formats: MaybeFormats = None,
    ttft: Annotated[
        str | None, typer.Option("--ttft", metavar="p90=500ms,…", help="Limits of TTFT.")
    ] = None,
    itl: Annotated[
        str | None, typer.Option("--itl", metavar="p99=50ms,…", help="Limits of gaps.")
    ] = None,
    tpot: Annotated[
        str | None, typer.Option("--tpot", metavar="p90=40ms,…", help="Of mean gaps.")
    ] = None,
    e2e: Annotated[
        str | None, typer.Option("--e2e", metavar="p99=30s,…", help="Limits of E2E.")
    ] = None,
    goal: Annotated[
        str,
        typer.Option("--goal", metavar="rate|latency", help="Most requests/s, or least E2E."),
    ] = "rate",
    chunks: Annotated[
        str, typer.Option("--chunks", metavar="N,…", help="Tokens of a step.")
    ] = "512,2048,8192",
    batches: Annotated[
        str, typer.Option("--batches", metavar="N,…", help="Sequences that decode.")
    ] = "64,256,512",
    plans: Annotated[
        list[str] | None,
        typer.Option("--plan", metavar="tp=8", help="Of an instance; several are allowed."),
    ] = None,
    duration: Annotated[
        float,
        typer.Option("--duration", metavar="S", help="Seconds of arrivals of a run.", min=1.0),
    ] = 60.0,
    seeds: SeedsOption = "0",
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="Layouts that are ranked.", min=1)
    ] = 5,
    journal: JournalOption = None,
    target: EmitOption = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """The best use of owned chips: plans, prefill:decode split, chunk and batch at once."""
    from chipsim.cli.progress import counting
    from chipsim.cluster.inventory import parse_inventory
    from chipsim.cluster.journal import Journal
    from chipsim.cluster.planning import plan_inventory

    _check_ending(out)
    wanted = read_target(target)
    owned = parse_inventory(inventory)
    limits = {"ttft": ttft, "itl": itl, "tpot": tpot, "e2e": e2e}
    chosen = _scenario(scenario, owned[0].chip, model, workload, rate, formats, limits)
    with counting("layouts") as progress:
        found = plan_inventory(
            owned,
            chosen,
            goal=goal,  # type: ignore[arg-type] # checked there
            seeds=whole_numbers("--seeds", seeds, least=0),
            chunks=whole_numbers("--chunks", chunks),
            batches=whole_numbers("--batches", batches),
            plans=plans or (),
            top=top,
            duration_s=duration,
            journal=Journal(journal),
            progress=progress,
        )
    if out is not None:
        _write(found, out)
    _answer(found, wanted, as_json=as_json)


def _check_ending(out: str | None) -> None:
    from pathlib import Path

    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")


def _write(found: Ranking, out: str) -> None:
    from chipsim.explore.store import save

    save(found, out, seed=found.seeds[0])
    remark(f"wrote {out}")


def _answer(found: Ranking, wanted: str | None, *, as_json: bool) -> None:
    """The sketch, the record or the tables."""
    from chipsim.present.planning import planning_record, planning_tables

    if wanted is not None:
        _emit(found, wanted)
    elif as_json:
        emit(planning_record(found))
    else:
        show(*planning_tables(found))


def _emit(found: Ranking, wanted: str) -> None:
    from chipsim.cli.emitting import write_sketch
    from chipsim.cluster.deployment import Deployment

    if not found.rows:
        raise ChipsimError(f"--emit: nothing to write: {found.reason}")
    best = found.rows[0]
    write_sketch(Deployment.of(best.cluster, why=found.decided), wanted)


def _scenario(
    name: str | None,
    chip: str,
    model: str | None,
    workload: str | None,
    rate: float | None,
    formats: str | None,
    limits: dict[str, str | None],
) -> Scenario:
    """A scenario of the library with what is given instead, or one of what is given."""
    from chipsim.cluster.scenario import Scenario

    slo = {key: _limits(f"--{key}", text) for key, text in limits.items() if text is not None}
    if name is not None:
        base = Scenario.load(name)
        given: dict[str, Any] = {"model": model, "precision": formats, "slo": slo or None}
        if workload is not None:
            given["workload"] = {
                "base": workload,
                "rate": base.workload.rate if rate is None else rate,
            }
        return base.changed(rate=None if workload else rate, **given)
    if model is None or not slo:
        raise ChipsimError(
            "plan: a SCENARIO is required, or --model with a limit such as --ttft"
        )
    return Scenario.build(
        "plan",
        name=model,
        model=model,
        precision=formats,
        workload={
            "base": workload or "azure-conversation",
            "rate": 1.0 if rate is None else rate,
        },
        pools={"all": {"chip": chip}},
        slo=slo,
    )


def _limits(option: str, text: str) -> dict[str, str]:
    """``p90=500ms,p99=2s``."""
    found: dict[str, str] = {}
    for part in text.split(","):
        share, sign, limit = part.strip().partition("=")
        if not (sign and share and limit):
            raise ConfigError(option, "", text, "percentiles and times: p90=500ms,p99=2s")
        if share in found:
            raise ConfigError(option, share, limit, "each percentile once")
        found[share] = limit
    return found
