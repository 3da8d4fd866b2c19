"""A step from its start to its end, and what a job does when its own part is done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chipsim.cluster.engine import Steps, codes
from chipsim.cluster.engine.steps import decode_seconds, mixed_seconds, prefill_seconds
from tests.cluster.oracle.hand_off import queue_hand_off, send, stream_chunk
from tests.cluster.oracle.next_turn import pass_on
from tests.cluster.oracle.parts import NEVER, Job, Machine, Part

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def start_step(c: Cluster, machine: Machine, parts: list[Part]) -> None:
    for part in parts:
        part.seconds = part_seconds(c, c.steps, part) + part.rank.extra_s
        part.rank.extra_s = 0.0
        if c.joules is not None and c.options.energy:
            part.joules = part_seconds(c, c.joules, part)
    seconds = max(part.seconds for part in parts)
    for part in parts:
        for job, _ in part.chunks:
            job.chunk_start, job.chunk_s = c.now, seconds
    machine.parts, machine.started = parts, c.now
    machine.ends = c.now + seconds
    machine.waiting = sum(len(rank.queue) for rank in machine.ranks)
    machine.used_then = machine.used
    machine.totals["joules"] += sum(part.joules for part in parts)


def part_seconds(c: Cluster, table: Steps, part: Part) -> float:
    kind = int(part.rank.machine.pool["table"])
    contexts = [c.context(job) for job in part.decodes]
    limit = int(table.limit[kind])
    whole, bounded = sum(contexts), sum(min(c, limit) for c in contexts)
    n = len(contexts)
    if not part.chunks:
        return decode_seconds(table, kind, n, float(whole), float(bounded))
    tokens = sum(size for _, size in part.chunks)
    squares = float(sum(size**2 for _, size in part.chunks))
    earlier = float(sum(size * job.in_cache for job, size in part.chunks))
    ends = sum(size + job.in_cache == job.to_prefill for job, size in part.chunks)
    if not n:
        return prefill_seconds(table, kind, tokens, squares, earlier, ends)
    return mixed_seconds(
        table, kind, tokens, squares, earlier, ends, n, float(whole), float(bounded)
    )


def end_step(c: Cluster, machine: Machine) -> None:
    c.events += 1
    book(c, machine)
    parts, machine.parts, machine.ends = machine.parts, [], NEVER
    c.touched.add(machine.index)
    for part in parts:
        for job in part.decodes:
            if math.isnan(job.decode_start):
                job.decode_start = machine.started
            emit(c, job)
        for job in sorted(part.decodes, key=lambda job: job.index):
            if job.emitted == job.output:
                end(c, job)
        for job, size in part.chunks:
            job.in_cache += size
            c.keep(part.rank, job, job.in_cache)
            if job.in_cache == job.to_prefill:
                end_prefill(c, job)
            else:
                c.seen["partial"] += 1
                stream_chunk(c, job)


def book(c: Cluster, machine: Machine) -> None:
    """Account for a step that ends now."""
    parts, seconds = machine.parts, c.now - machine.started
    prompt_tokens = sum(size for part in parts for _, size in part.chunks)
    decodes = sum(len(part.decodes) for part in parts)
    kind = codes.PREFILL_STEP if not decodes else codes.MIXED_STEP
    kind = kind if prompt_tokens else codes.DECODE_STEP
    name = {codes.PREFILL_STEP: "prefill_s", codes.DECODE_STEP: "decode_s"}
    machine.totals[name.get(kind, "mixed_s")] += seconds
    machine.totals["steps"] += 1
    machine.totals["prompt_tokens"] += prompt_tokens
    machine.totals["decode_tokens"] += decodes
    c.seen[name.get(kind, "mixed_s")] += 1
    c.log.append(
        {
            "start_s": machine.started,
            "end_s": c.now,
            "instance": machine.index,
            "kind": kind,
            "prompt_tokens": prompt_tokens,
            "prompts": sum(len(part.chunks) for part in parts),
            "decodes": decodes,
            "waiting": machine.waiting,
            "kv_blocks": machine.used_then,
        }
    )


def emit(c: Cluster, job: Job) -> None:
    if job.tokens_at:
        c.gaps.append(c.now - job.tokens_at[-1])
    job.tokens_at.append(c.now)


def end_prefill(c: Cluster, job: Job) -> None:
    job.prefill_end = c.now
    if not c.by_decode:
        emit(c, job)
        if job.emitted == job.output:
            end(c, job)
            return
    if job.stays:
        job.phase, job.decode, job.target = "decoding", job.rank, None
        return
    job.rank.running.remove(job)
    job.phase = "handing_off"
    if job.reserved is not None:
        send(c, job, job.reserved)
    else:
        queue_hand_off(c, c.now, 0, job)


def end(c: Cluster, job: Job) -> None:
    rank = job.rank
    rank.running.remove(job)
    rank.cache.keep(job, c.context(job) - 1)
    job.status, job.phase, job.finish = "finished", "gone", c.now
    if not pass_on(c, job):
        c.free(rank, job)
    for turn in c.jobs:
        if turn.parent == job.index:
            c.arrivals.append((c.now + turn.think, turn.index))
            c.seen["turns"] += 1
