"""Descriptions of workloads in YAML, and `load_workload`: by name, description or trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from chipsim.arch_configs import load, names
from chipsim.cluster.arrivals import Arrivals, arrival_times
from chipsim.cluster.generators import (
    Lengths,
    generate,
    process_of,
    rearranged,
    resample,
    streams,
)
from chipsim.cluster.readers import read_rows
from chipsim.cluster.sessions import Sessions, sessions
from chipsim.errors import ChipsimError, ConfigError, UnknownNameError
from chipsim.spec import FieldError, Spec
from chipsim.units import Seconds

if TYPE_CHECKING:
    from chipsim.cluster.rows import Rows, Spread
    from chipsim.cluster.workload import Workload

Rate = Annotated[float, Field(gt=0, le=1e9)]


class TraceFile(Spec):
    """A file of requests."""

    path: str
    """Beside the description, unless it is absolute."""
    format: str | None = None
    """A name of `chipsim.cluster.readers.FORMATS`; detected unless given."""
    spread: Literal["even", "random"] | None = None
    """Requests of one time stamp are spread over the time until the next."""
    resample: Literal["joint", "independent"] | None = None
    """Draw its requests with replacement instead of replaying it."""


def _as_file(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class WorkloadSpec(Spec):
    """How a workload is made: from ``lengths``, ``sessions`` or a ``trace``."""

    name: str
    description: str = ""
    source: str
    license: str = ""
    rate: Rate | None = None
    """Requests/s (of sessions: first turns); a trace keeps its own unless given."""
    requests: Annotated[int, Field(ge=1)] | None = None
    """How many; of a trace: its first ones."""
    duration: Annotated[Seconds, Field(gt=0)] | None = None
    """Until when they arrive, instead of ``requests``."""
    seed: Annotated[int, Field(ge=0)] = 0
    arrivals: Arrivals | None = None
    """Poisson unless given; a trace that is replayed keeps its own."""
    lengths: Lengths | None = None
    sessions: Sessions | None = None
    trace: Annotated[TraceFile | None, BeforeValidator(_as_file)] = None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        kinds = [k for k in ("lengths", "sessions", "trace") if getattr(self, k) is not None]
        if len(kinds) != 1:
            told = " and ".join(kinds) or None
            raise FieldError("lengths", told, "one of lengths, sessions and trace")
        if self.requests is not None and self.duration is not None:
            raise FieldError("duration", self.duration, "requests or duration, not both")
        if self.drawn and self.rate is None:
            raise FieldError("rate", None, "requests/s above 0")
        if self.drawn and self.requests is None and self.duration is None:
            raise FieldError("requests", None, "requests or duration")
        return self

    @property
    def kind(self) -> str:
        """``lengths``, ``sessions`` or ``trace``."""
        return next(k for k in ("lengths", "sessions", "trace") if getattr(self, k) is not None)

    @property
    def drawn(self) -> bool:
        """Whether arrivals are drawn: of everything but a trace that is replayed."""
        return self.trace is None or self.trace.resample is not None

    @classmethod
    def load(cls, name: str) -> WorkloadSpec:
        """Read a description by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("workloads", name)
        spec = cls.read(data, path)
        if spec.trace is None:
            return spec
        # A description may be read from anywhere: its trace lies beside it.
        beside = spec.trace.model_copy(update={"path": str(path.parent / spec.trace.path)})
        return spec.model_copy(update={"trace": beside})

    def changed(self, **fields: Any) -> WorkloadSpec:
        """The description with other values where one is given (`ConfigError`)."""
        given = {name: value for name, value in fields.items() if value is not None}
        if {"requests", "duration"} & given.keys():
            given = {"requests": None, "duration": None} | given
        return WorkloadSpec.build(self.name, **(dict(self) | given))

    def workload(self) -> Workload:
        """The requests (`ChipsimError`)."""
        size: dict[str, Any] = {"requests": self.requests, "duration_s": self.duration}
        kind: dict[str, Any] = size | {
            "seed": self.seed,
            "arrivals": self.arrivals or "poisson",
        }
        if self.lengths is not None:
            made = generate(self.rate or 0.0, self.lengths, **kind)
        elif self.sessions is not None:
            made = sessions(self.rate or 0.0, self.sessions, **kind)
        else:
            made = self._of_trace(self.trace or TraceFile(path=""), kind)
        source = made.source if self.trace is not None else f"{made.source}; {self.source}"
        return replace(made, name=self.name, source=source)

    def _of_trace(self, file: TraceFile, kind: dict[str, Any]) -> Workload:
        rows = read_rows(file.path, file.format)
        if file.resample is not None:
            joint = file.resample == "joint"
            whole = _timed(rows, self.rate, None, file.spread, self.seed)
            return resample(whole, self.rate or 0.0, joint=joint, **kind)
        return _cut(
            _timed(rows, self.rate, self.arrivals, file.spread, self.seed),
            self.requests,
            self.duration,
        )


def _timed(
    rows: Rows, rate: float | None, arrivals: Arrivals | None, spread: Spread | None, seed: int
) -> Workload:
    """A trace at a rate, with its own arrivals or new ones; lengths need new ones."""
    if rows.arrival_s is None:
        if rate is None:
            return rows.workload()  # says what is missing
        count = len(rows.some())
        at = arrival_times(process_of(arrivals or "poisson"), rate, streams(seed, 2)[0], count)
        return rows.workload(arrival_s=at, seed=seed)
    found = rows.workload(spread=spread, seed=seed)
    if arrivals is not None:
        return rearranged(found, rate or found.rate_rps, arrivals, seed)
    return found if rate is None else found.at_rate(rate)


def _cut(workload: Workload, requests: int | None, duration_s: float | None) -> Workload:
    if requests is not None:
        if not 1 <= requests <= len(workload):
            allowed = f"1 to {len(workload)}, as the trace has"
            raise ConfigError(workload.name, "requests", requests, allowed)
        return workload.head(requests)
    if duration_s is not None:
        end = workload.arrival_s[0] + duration_s
        return workload.head(max(1, int(np.searchsorted(workload.arrival_s, end))))
    return workload


def load_workload(
    name: str | Path,
    *,
    rate: float | None = None,
    requests: int | None = None,
    duration_s: float | None = None,
    seed: int | None = None,
    arrivals: Arrivals | str | None = None,
    format: str | None = None,  # noqa: A002 - as numpy and pandas call it
    spread: Spread | None = None,
) -> Workload:
    """A workload of the library, of a description in YAML, or of a trace.

    Parameters
    ----------
    name : str or Path
        ``azure-code``, ``mine.yaml``, ``trace.csv``, ``trace.jsonl.gz``, …
    rate : float, optional
        Requests/s (of sessions: first turns); a trace's arrivals are stretched to it.
    requests, duration_s : int, float, optional
        How many, or until when; of a trace: its beginning.
    seed : int, optional
        Of what is drawn.
    arrivals : Arrivals or str, optional
        Another process, or the kind of one; in place of a trace's own times too.
    format, spread : str, optional
        Of a trace: as `chipsim.cluster.readers.read_trace`.

    Raises
    ------
    ChipsimError
        One line: an unknown name (near misses are suggested), or what is wrong in a file.
    """  # fmt: skip
    spec = _described(str(name), format, spread)
    if arrivals is not None:
        arrivals = _process(spec.arrivals, arrivals)
    changed = spec.changed(
        rate=rate, requests=requests, duration=duration_s, seed=seed, arrivals=arrivals
    )
    return changed.workload()


def is_drawn(name: str | Path, *, format: str | None = None) -> bool:  # noqa: A002
    """Whether a workload is drawn, so that there are as many requests of it as one asks for.

    Raises
    ------
    ChipsimError
        As `load_workload`.
    """
    return _described(str(name), format, None).drawn


def _described(name: str, kind: str | None, spread: Spread | None) -> WorkloadSpec:
    """The description that a name, a YAML file or a trace stands for."""
    if name in names("workloads") or name.endswith((".yaml", ".yml")):
        if kind is not None or spread is not None:
            told = kind or spread
            raise ConfigError(name, "format or spread", told, "none: they read a trace")
        return WorkloadSpec.load(name)
    if not Path(name).exists():
        if "/" in name or "." in Path(name).name:
            raise ChipsimError(f"{name}: no such file")
        raise UnknownNameError("workload", name, names("workloads"))
    file = {"path": name, "format": kind, "spread": spread}
    return WorkloadSpec.build(Path(name).name, name=Path(name).name, source=name, trace=file)


def _process(known: Arrivals | None, arrivals: Arrivals | str) -> Arrivals:
    """A process; one given by kind keeps the description's other figures."""
    if isinstance(arrivals, Arrivals):
        return arrivals
    figures = {} if known is None else dict(known)
    return Arrivals.build("arrivals", **(figures | {"kind": arrivals}))
