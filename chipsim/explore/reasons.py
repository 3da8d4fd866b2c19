"""Why two runs of an operator differ: its seconds by part, and one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from chipsim.estimates import OperatorRow

PARTS = ("launch", "compute", "memory", "reduction", "link")
"""What a latency is made of; they add up to it."""

_SAME = 1e-3
"""Difference, as a part of the longer latency, below which two runs are the same."""
_ALSO = 0.25
"""A second part is told when it is at least this much of the first."""


@dataclass(frozen=True, slots=True)
class Side:
    """One operator (all its runs), or a group, in one run.

    Attributes
    ----------
    latency_s : float
        Seconds.
    bound : str
        Of its largest part; empty where the run does not say.
    parts : mapping
        Seconds by `PARTS`. Of memory and compute the longer counts in full, the other
        with what does not run behind it. Empty: the run gives only seconds.
    flops, memory_bytes, core_s, memory_s, count : float
        Work, the seconds that its arithmetic and its traffic take, and its launches.
    """

    latency_s: float = 0.0
    bound: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    flops: float = 0.0
    memory_bytes: float = 0.0
    core_s: float = 0.0
    memory_s: float = 0.0
    count: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[OperatorRow]) -> Self:
        """Operators together."""
        total = dict.fromkeys(PARTS, 0.0)
        for row in rows:
            for part, seconds in _parts(row.estimate.parts).items():
                total[part] += row.count * seconds

        def summed(of_row: Callable[[OperatorRow], float]) -> float:
            return sum(row.count * of_row(row) for row in rows)

        return cls(
            sum(row.latency_s for row in rows),
            max(rows, key=lambda row: row.latency_s).estimate.bound,
            total,
            summed(lambda row: row.estimate.flops),
            summed(lambda row: row.estimate.memory_bytes),
            summed(lambda row: row.estimate.parts.get("core", 0.0)),
            summed(lambda row: row.estimate.parts.get("memory", 0.0)),
            sum(row.count for row in rows),
        )


def _parts(seconds: Mapping[str, float]) -> dict[str, float]:
    """Parts of an estimate, the hidden time taken from the shorter of memory and core."""
    core = seconds.get("core", 0.0) + seconds.get("conversion", 0.0)
    memory = seconds.get("memory", 0.0)
    hidden = seconds.get("hidden", 0.0)
    behind_memory = memory >= core
    return {
        "launch": seconds.get("launch", 0.0),
        "compute": core - hidden if behind_memory else core,
        "memory": memory if behind_memory else memory - hidden,
        "reduction": seconds.get("reduction", 0.0),
        "link": seconds.get("link", 0.0),
    }


def why(a: Side, b: Side) -> str:
    """The one or two parts that make most of the difference, in plain words."""
    longer = max(a.latency_s, b.latency_s)
    if abs(a.latency_s - b.latency_s) <= _SAME * longer:
        return "the same"
    if not (a.latency_s and b.latency_s):
        return f"only in {'a' if a.latency_s else 'b'}"
    if not (a.parts and b.parts):
        return _one_sided(a if a.parts else b)
    change = {part: b.parts[part] - a.parts[part] for part in PARTS}
    ordered = sorted(PARTS, key=lambda part: -abs(change[part]))
    told = [p for p in ordered[:2] if abs(change[p]) >= _ALSO * abs(change[ordered[0]])]
    if set(told) == {"compute", "memory"} and _longest(a) != _longest(b):
        seconds = _pair(a.parts[_longest(a)], b.parts[_longest(b)], "s")
        return f"{_longest(a)} against {_longest(b)}: {seconds}"
    return "; ".join(_TOLD[part](a, b) for part in told)


def _longest(side: Side) -> str:
    return "memory" if side.parts["memory"] >= side.parts["compute"] else "compute"


def _one_sided(side: Side) -> str:
    """What the run that shows its parts is made of."""
    ordered = sorted(PARTS, key=lambda part: -side.parts[part])
    shares = [(part, side.parts[part] / side.latency_s) for part in ordered[:2]]
    told = ", ".join(f"{share:.0%} {part}" for part, share in shares if share >= 0.01)
    return f"ours: {told}"


def _launch(a: Side, b: Side) -> str:
    each_a, each_b = a.parts["launch"] / a.count, b.parts["launch"] / b.count
    text = f"launch: {_pair(each_a, each_b, 's')}"
    return text if a.count == b.count else f"{text}, {a.count:g} against {b.count:g} times"


def _compute(a: Side, b: Side) -> str:
    if not (a.core_s and b.core_s and a.flops):
        return f"compute: {_pair(a.parts['compute'], b.parts['compute'], 's')}"
    if _close(a.flops / a.core_s, b.flops / b.core_s):
        seconds = _pair(a.parts["compute"], b.parts["compute"], "s")
        return f"compute not hidden behind memory: {seconds}"
    rates = _pair(a.flops / a.core_s, b.flops / b.core_s, "FLOP/s")
    return f"compute: {rates}"


def _memory(a: Side, b: Side) -> str:
    if not (a.memory_s and b.memory_s):
        return f"memory: {_pair(a.parts['memory'], b.parts['memory'], 's')}"
    rates = a.memory_bytes / a.memory_s, b.memory_bytes / b.memory_s
    same_bytes, same_rate = _close(a.memory_bytes, b.memory_bytes), _close(*rates)
    if same_bytes and same_rate:
        seconds = _pair(a.parts["memory"], b.parts["memory"], "s")
        return f"memory not hidden behind compute: {seconds}"
    if same_bytes:
        return f"memory: {_pair(*rates, 'B/s')} at the same bytes"
    moved = _pair(a.memory_bytes, b.memory_bytes, "B")
    return f"memory: {moved}" + ("" if same_rate else f" at {_pair(*rates, 'B/s')}")


def _reduction(a: Side, b: Side) -> str:
    return f"reduction of split k: {_pair(a.parts['reduction'], b.parts['reduction'], 's')}"


def _link(a: Side, b: Side) -> str:
    if not (a.parts["link"] and b.parts["link"]) or not _close(a.memory_bytes, b.memory_bytes):
        return f"links: {_pair(a.parts['link'], b.parts['link'], 's')}"
    rates = a.memory_bytes / a.parts["link"], b.memory_bytes / b.parts["link"]
    return f"links: {_pair(*rates, 'B/s')} at the same bytes"


_TOLD = {
    "launch": _launch,
    "compute": _compute,
    "memory": _memory,
    "reduction": _reduction,
    "link": _link,
}

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
             (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))  # fmt: skip


def _pair(a: float, b: float, unit: str) -> str:
    """Two quantities in the unit of the larger."""
    larger = max(a, b)
    scale, prefix = next((p for p in _PREFIXES if larger >= p[0]), _PREFIXES[-1])
    return f"{a / scale:.3g} against {b / scale:.3g} {prefix}{unit}"


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * max(a, b)
