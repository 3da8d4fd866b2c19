"""The event engine: numbers in, numbers out, one loop.

requests, pools, instances, links, step tables -> `run` -> requests' times, gaps, instances

`run(requests, steps, pools, instances, ...)` is the only entry; it checks, allocates, and
calls the loop. No YAML, no objects: `Requests`, `Steps` (latency tables) and `Options` are
named tuples of arrays or numbers; pools, instances, links, tiers and timers are structured
arrays with the dtypes `POOL`, `INSTANCE`, `LINK`, `TIER`, `TIMER` of `inputs`; codes have
names in `codes` (``codes.BATCHING["chunked"]``). Seconds, bytes, tokens throughout.

>>> from chipsim.cluster.engine import Requests, flat_steps, instances, pools, run
>>> requests = Requests.of(arrival_s=[0.0, 0.0], prompt=[100, 100], output=[3, 2])
>>> steps = flat_steps(prefill_s=0.1, decode_s=0.01, tokens=256, batch=8)
>>> outcome = run(
...     requests,
...     steps,
...     pools(kv_blocks=1000, block=1, max_batch=8, max_tokens=150),
...     instances(pool=[0]),
... )
>>> outcome.requests["first_token_s"].tolist()
[0.1, 0.2]
>>> outcome.requests["finish_s"].round(9).tolist()
[0.22, 0.21]
>>> outcome.gaps.round(9).tolist(), outcome.gap_counts.tolist()
([0.01, 0.11, 0.01], [1, 1, 1])
"""

from __future__ import annotations

from chipsim.cluster.engine.inputs import (
    Options,
    Requests,
    flat_steps,
    instances,
    links,
    pools,
    tiers,
    timers,
)
from chipsim.cluster.engine.run import Outcome, run
from chipsim.cluster.engine.steps import Steps

__all__ = [
    "Options",
    "Outcome",
    "Requests",
    "Steps",
    "flat_steps",
    "instances",
    "links",
    "pools",
    "run",
    "tiers",
    "timers",
]
