"""Splitwise's routing: two pools, and the machines that they lend to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import DECODE, PREFILL
from chipsim.cluster.engine.touch import charge, rescore
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

MIXED_ROLE = PREFILL | DECODE


@part
def token_jsq(S: State, r: int, k: int) -> None:
    """Count a request's decode from its arrival on, where the least pending tokens are."""
    S.requests[r].to = k
    charge(S, k, 0, 1)


@part
def mixed_pool(S: State, r: int) -> int:
    """Rank that prefills; the one that decodes is noted as the request's ``to``.

    Pools of prompt machines, of token machines, and of those lent to do both. A pool
    refuses where its best machine has too much before it; then the mixed pool is asked;
    then a machine of the other pool is lent; at last the one with the least to do does both.
    """
    request = S.requests[r]
    prompt = _prompt_machine(S, r, PREFILL, 0)
    if prompt < 0:
        prompt = _prompt_machine(S, r, MIXED_ROLE, 1)
    token = _token_machine(S, r, DECODE, 0)
    if token < 0:
        token = _token_machine(S, r, MIXED_ROLE, 1)
    if prompt < 0:
        prompt = _least(S, DECODE, 0, False)
        if prompt >= 0:
            _lend(S, prompt)
    if token < 0:
        token = _least(S, PREFILL, 0, True)
        if token >= 0:
            _lend(S, token)
    if prompt < 0 or token < 0:
        prompt = _least_of_all(S)
        token = prompt
    S.instances[prompt].promised += request.length + 1
    S.instances[token].promised += request.output - 1
    if token != prompt:
        request.promised = request.length + 1
        S.instances[token].promised += request.promised
    request.to = S.instances[token].first
    charge(S, request.to, token != prompt, 1)
    rescore(S, prompt)
    return S.instances[prompt].first


@part
def _prompt_machine(S: State, r: int, home: int, lent: int) -> int:
    """The pool's machine with the least pending tokens, or -1: its queue is long."""
    i = _least(S, home, lent, False)
    if i < 0 or S.ranks[S.instances[i].first].listed == 0:
        return i
    tokens = S.instances[i].pending + S.requests[r].length
    return -1 if tokens > S.sim[0].prompt_limit else i


@part
def _token_machine(S: State, r: int, home: int, lent: int) -> int:
    """The pool's machine with the least KV promised, or -1: its memory is full."""
    i = _least(S, home, lent, True)
    if i >= 0:
        instance, request = S.instances[i], S.requests[r]
        tokens = instance.used + instance.promised + request.prompt + request.output
        if tokens > S.ranks[instance.first].capacity:
            return -1
    return i


@part
def _least(S: State, home: int, lent: int, by_memory: bool) -> int:
    """The machine of a pool with the least KV or pending tokens; the earliest of equals."""
    best, least, place = -1, np.inf, 0
    for i in range(S.instances.shape[0]):
        instance = S.instances[i]
        if instance.up and instance.role & home and instance.lent == lent:
            load = float(instance.pending)
            if by_memory:
                load = float(instance.used + instance.promised)
            if load < least or (load == least and instance.place < place):
                best, least, place = i, load, instance.place
    return best


@part
def _least_of_all(S: State) -> int:
    """The machine with the least pending tokens; prompt, mixed, token pool among equals."""
    best = _least(S, PREFILL, 0, False)
    for i in (_least(S, MIXED_ROLE, 1, False), _least(S, DECODE, 0, False)):
        if i >= 0 and (best < 0 or S.instances[i].pending < S.instances[best].pending):
            best = i
    return best


@part
def _lend(S: State, i: int) -> None:
    S.sim[0].places += 1
    S.instances[i].lent, S.instances[i].place = 1, S.sim[0].places


@part
def go_home(S: State, i: int) -> None:
    """A lent machine that has nothing left goes back to the end of its own pool."""
    if S.instances[i].lent:
        S.sim[0].places += 1
        S.instances[i].lent, S.instances[i].place = 0, S.sim[0].places
