"""What a workload looks like: lengths, gaps, rates, and what a perfect cache would save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipsim.cluster.workload import Workload

    Whole = NDArray[np.int64]

PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


def summary(workload: Workload) -> dict[str, Any]:
    """Statistics of a workload, SI units in the names; None where there is no such figure.

    Percentiles are linear between order statistics. Gaps and rates of a closed loop are
    those of first turns: later ones arrive when the served system lets them.
    """
    at = workload.arrival_s[workload.roots]
    prompt, output = workload.prompt_tokens, workload.output_tokens
    gaps = np.diff(at)
    reuse, reuse_rows = _reuse(workload)
    rows = [_row("prompt_tokens", prompt), _row("output_tokens", output)]
    rows += [_row("interarrival_s", gaps)] if len(gaps) else []
    return {
        "name": workload.name,
        "source": workload.source,
        "seed": workload.seed,
        "requests": len(workload),
        "closed_loop": workload.closed_loop,
        "sessions": len(np.unique(workload.session[workload.session >= 0])),
        "span_s": workload.span_s,
        "rate_rps": workload.rate_rps or None,
        "peak_rps": int(np.unique(np.floor(at), return_counts=True)[1].max()),
        "interarrival_cv": _ratio(_std(gaps), gaps.mean()) if len(gaps) else None,
        "zero_gap_share": float((gaps == 0.0).mean()) if len(gaps) else None,
        "prompt_tokens_total": int(prompt.sum()),
        "output_tokens_total": int(output.sum()),
        "prompt_to_output": float(prompt.sum() / output.sum()),
        "median_prompt_to_output": float(np.median(prompt / output)),
        "prompt_output_correlation": _correlation(prompt, output),
        **reuse,
        "dropped": dict(workload.dropped),
        "counted": dict(workload.counted),
        "rows": rows + reuse_rows,
    }


def _row(series: str, values: NDArray[Any]) -> dict[str, Any]:
    percentiles = np.percentile(values, PERCENTILES)
    return {
        "series": series,
        "mean": float(values.mean()),
        "std": _std(values),
        "min": float(values.min()),
        **{f"p{p}": float(v) for p, v in zip(PERCENTILES, percentiles, strict=True)},
        "max": float(values.max()),
    }


def _std(values: NDArray[Any]) -> float:
    """Of a sample (n - 1 below); 0 of one value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _ratio(above: float, below: float) -> float | None:
    return float(above / below) if below > 0.0 else None


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Pearson's; None where one of the two does not vary."""
    if first.std() == 0.0 or second.std() == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


REUSE = (
    "prefix_hit_share",
    "requests_hit_share",
    "distinct_blocks",
    "reusable_share",
    "uncached_prompt_to_output",
)
"""Figures of reuse: by leading blocks of earlier prompts; by those or by what a turn shares
with its parent's prompt and output, whichever is more; and what is left to compute."""


def _reuse(workload: Workload) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a cache without bounds would save (None: neither blocks nor turns are known)."""
    if len(workload.block_ids) == 0 and not workload.closed_loop:
        return dict.fromkeys(REUSE), []
    prompt, hits = workload.prompt_tokens, prefix_hits(workload)
    reused = np.maximum(hits, carried(workload))
    total, new = prompt.sum(), prompt - reused
    figures = (
        float(hits.sum() / total),
        float((hits > 0).mean()),
        distinct_blocks(workload),
        float(reused.sum() / total),
        float(new.sum() / workload.output_tokens.sum()),
    )
    rows = [_row("reusable_prompt_tokens", reused), _row("new_prompt_tokens", new)]
    return dict(zip(REUSE, figures, strict=True)), rows


def prefix_hits(workload: Workload) -> NDArray[np.int64]:
    """Prompt tokens in leading blocks that earlier prompts hold (a cache without bounds).

    Requests count in order of arrival, each seen at once by all later ones. A partly
    filled last block counts where its id is known: then its tokens are the same.

    Returns
    -------
    int64 array, rank 1
        Per request; 0 without blocks.
    """
    offsets, ids = workload.block_offsets, workload.block_ids
    counts = np.diff(offsets)
    if len(ids) == 0:
        return np.zeros(len(workload), np.int64)
    request = np.repeat(np.arange(len(workload)), counts)
    unseen = first_requests(ids, request)[0] >= request
    place = np.arange(len(ids)) - np.repeat(offsets[:-1], counts)
    hit_blocks = counts.copy()
    some = counts > 0
    hit_blocks[some] = np.minimum.reduceat(
        np.where(unseen, place, np.repeat(counts, counts)), offsets[:-1][some]
    )
    return np.asarray(np.minimum(hit_blocks * workload.block_tokens, workload.prompt_tokens))


def distinct_blocks(workload: Workload) -> int:
    """Ids among all blocks."""
    ids = workload.block_ids
    return first_requests(ids, np.zeros(len(ids), np.int64))[1] if len(ids) else 0


def first_requests(ids: Whole, request: Whole) -> tuple[Whole, int]:
    """For each block the first request that holds its id, and how many ids there are.

    Parameters
    ----------
    ids, request : int64 arrays, rank 1
        Blocks and whose they are, the requests in order.
    """
    low, high = int(ids.min()), int(ids.max())
    if low >= 0 and high < 4 * len(ids):  # ids counted through: a table, no sorting
        first = np.full(high + 1, -1)
        first[ids[::-1]] = request[::-1]  # the earliest is written last
        return first[ids], int((first >= 0).sum())
    _, places, inverse = np.unique(ids, return_index=True, return_inverse=True)
    return request[places][inverse], len(places)


def carried(workload: Workload) -> NDArray[np.int64]:
    """Prompt tokens that a turn shares with its parent's prompt and output (0: no parent)."""
    parent = workload.parent
    context = workload.prompt_tokens[parent] + workload.output_tokens[parent]
    return np.where(parent < 0, 0, np.minimum(context, workload.prompt_tokens))
