"""KV from one rank to another: how long it takes, and when both ends are free for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import NIC
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def seconds_to_send(S: State, k: int, to: int, tokens: int) -> float:
    """Of so many tokens from rank ``k``, once both ends are free."""
    link = S.links[S.ranks[k].pool, S.ranks[to].pool]
    descriptors = link.descriptors + link.descriptors_per_token * tokens
    total = link.latency_s + descriptors * link.descriptor_s
    return total + tokens * link.bytes_per_token / link.bytes_per_s


@part
def seconds_to_convert(S: State, k: int, to: int, tokens: int) -> float:
    """Of so many tokens on arrival, from the format on the wire."""
    link = S.links[S.ranks[k].pool, S.ranks[to].pool]
    return tokens * link.bytes_per_token / link.dequant_bytes_per_s


@part
def free_from(S: State, k: int, to: int, earliest_s: float) -> float:
    """When both ends can start, if they send and receive one transfer at a time."""
    if S.links[S.ranks[k].pool, S.ranks[to].pool].contention != NIC:
        return earliest_s
    sender, receiver = S.instances[S.ranks[k].instance], S.instances[S.ranks[to].instance]
    return max(earliest_s, sender.send_free_s, receiver.receive_free_s)


@part
def occupy(S: State, k: int, to: int, until_s: float) -> None:
    """Let both ends be busy with a transfer."""
    if S.links[S.ranks[k].pool, S.ranks[to].pool].contention == NIC:
        S.instances[S.ranks[k].instance].send_free_s = until_s
        S.instances[S.ranks[to].instance].receive_free_s = until_s
