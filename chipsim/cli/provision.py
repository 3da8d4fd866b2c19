"""``provision``: the cheapest counts of a cluster's pools that hold its objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.emitting import EmitOption, read_target
from chipsim.cli.options import AsJson, whole_numbers
from chipsim.cli.output import emit, remark, show
from chipsim.cli.simulate import (
    DurationOption,
    RateOption,
    RequestsOption,
    ScenarioName,
    changed,
)
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.provision import Provision

GoalOption = Annotated[
    str,
    typer.Option("--goal", metavar="GOAL", help="cost, silicon, power, chips or instances."),
]
SeedsOption = Annotated[
    str, typer.Option("--seeds", metavar="0,1,2", help="Of the workload; each must hold.")
]
MostOption = Annotated[
    int, typer.Option("--most", metavar="N", help="Instances in all.", min=1, max=100_000)
]
RangesOption = Annotated[
    str | None,
    typer.Option("--range", metavar="POOL=A:B,…", help="Fewest and most instances of pools."),
]
SpareOption = Annotated[
    float,
    typer.Option("--spare", metavar="X", help="Run counts up to X above the best.", min=0.0),
]
WorkersOption = Annotated[
    int, typer.Option("--workers", metavar="N", help="Runs at once.", min=1, max=256)
]
JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="FILE", help="Keep verdicts there; go on from them."),
]


def provision(
    scenario: ScenarioName,
    goal: GoalOption = "cost",
    rate: RateOption = None,
    duration: DurationOption = None,
    requests: RequestsOption = None,
    seeds: SeedsOption = "0",
    most: MostOption = 64,
    ranges: RangesOption = None,
    spare: SpareOption = 0.05,
    workers: WorkersOption = 1,
    journal: JournalOption = None,
    capacity: Annotated[
        bool, typer.Option("--capacity", help="The largest rate that the answer holds, too.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE.html", help="Counts that were run.")
    ] = None,
    versus: Annotated[
        str | None,
        typer.Option("--versus", metavar="SCENARIO", help="What the answer saves of its."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option("--uncertainty", metavar="N", help="Draws of step times and prices."),
    ] = None,
    block_error: Annotated[
        float,
        typer.Option(
            "--block-error", metavar="X", help="Of blocks that state none.", min=0.0, max=1.0
        ),
    ] = 0.3,
    correlation: Annotated[
        float,
        typer.Option(
            "--correlation", metavar="X", help="Of a block's error between its chips."
        ),
    ] = 0.5,
    draw_seed: Annotated[
        int, typer.Option("--draw-seed", metavar="S", help="Of the draws.", min=0)
    ] = 0,
    target: EmitOption = None,
    as_json: AsJson = False,
) -> None:
    """The cheapest counts of instances that hold a scenario's objective."""
    from chipsim.cli.progress import counting
    from chipsim.cluster.journal import Journal
    from chipsim.cluster.provision import provision as search_counts
    from chipsim.cluster.search import Search
    from chipsim.present.html import check_ending
    from chipsim.present.provision import provision_record, versus_record

    if out is not None:  # known before a search, not behind it
        check_ending(out)
    wanted = read_target(target)
    kept = Journal(journal)

    def answered(name: str, spans: dict[str, tuple[int, int]] | None) -> Provision:
        chosen = changed(name, rate, duration, requests, None, None)
        search = Search(
            chosen, whole_numbers("--seeds", seeds, least=0), journal=kept, workers=workers
        )
        with counting("counts") as progress:
            return search_counts(
                search,
                goal,  # type: ignore[arg-type] # checked there
                most=most,
                ranges=spans,
                spare=spare,
                progress=progress,
            )

    answers = [answered(scenario, _ranges(ranges))]
    answers += [] if versus is None else [answered(versus, None)]
    answer = answers[0]
    record = provision_record(answer, with_capacity=capacity)
    record["versus"] = None if versus is None else versus_record(answers[1], answer)
    record["uncertainty"] = None
    if draws is not None:
        record["uncertainty"] = _drawn(answers, draws, draw_seed, block_error, correlation)
    if out is not None:
        _write(answer, out)
    _answer(answer, record, wanted, as_json=as_json)


def _drawn(
    answers: list[Provision], draws: int, seed: int, block_error: float, correlation: float
) -> dict[str, Any]:
    from chipsim.cli.progress import counting
    from chipsim.cluster.draws import chip_key
    from chipsim.cluster.uncertainty import specs, uncertain
    from chipsim.validation.block_errors import block_error as error_of

    kinds = {
        chip_key(spec): (spec, answer.search.cluster.made[name].precision.weights)
        for answer in answers
        for name, spec in specs(answer).items()
    }
    errors = [error_of(spec, weights, block_error) for spec, weights in kinds.values()]
    with counting("draws") as progress:
        found = uncertain(
            answers,
            errors,
            draws=draws,
            seed=seed,
            correlation=correlation,
            progress=progress,
        )
    return found.record()


def _write(answer: Provision, out: str) -> None:
    from chipsim.present.html import write_figure
    from chipsim.present.provision import provision_figure

    write_figure(provision_figure(answer), out, [], [])
    remark(f"wrote {out}")


def _answer(
    answer: Provision, record: dict[str, Any], wanted: str | None, *, as_json: bool
) -> None:
    """The sketch, the record or the tables."""
    from chipsim.present.provision import provision_tables

    if wanted is not None:
        _emit(answer, wanted)
    elif as_json:
        emit(record)
    else:
        show(*provision_tables(record))


def _emit(answer: Provision, wanted: str) -> None:
    from chipsim.cli.emitting import write_sketch
    from chipsim.cluster.deployment import Deployment

    if answer.best is None:
        raise ChipsimError(f"--emit: nothing to write: {answer.reason}")
    cluster, best = answer.search.cluster, answer.best
    write_sketch(Deployment.of(cluster, best.instances, why=[answer.decided]), wanted)


def _ranges(text: str | None) -> dict[str, tuple[int, int]] | None:
    """``prefill=10:30,decode=2:12``."""
    if text is None:
        return None
    found = {}
    for part in text.split(","):
        pool, _, span = part.partition("=")
        low, _, high = span.partition(":")
        if not (low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
            raise ConfigError("--range", pool.strip(), span, "two whole numbers: POOL=A:B")
        if pool.strip() in found:
            raise ConfigError("--range", pool.strip(), span, "each pool once")
        found[pool.strip()] = (int(low), int(high))
    return found
