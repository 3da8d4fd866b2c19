"""The MLP of a layer as operators: dense, or routed and shared experts.

Experts are spread over ``ep`` chips of a stage. Where every chip has all tokens (one
data-parallel rank), each computes for its own experts and one all-reduce adds up. With
several ranks the tokens travel: an all-to-all to the experts and one back; chips that split
the columns of an expert then gather what each of them got, and scatter the sums.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chipsim.ops.collectives import expert_copies
from chipsim.ops.experts import GroupedGemm
from chipsim.ops.layers import Dense
from chipsim.ops.loads import rank_loads
from chipsim.ops.operators import (
    Activation,
    AllGather,
    AllReduce,
    AllToAll,
    ReduceScatter,
    Softmax,
)

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder
    from chipsim.ops.layers import Experts, Mlp
    from chipsim.ops.loads import RankLoad


def add_mlp(b: Builder, mlp: Mlp, source: str | None) -> tuple[str, bool]:
    """The MLP; its last node, and whether that is a sum in parts over the tp chips."""
    if isinstance(mlp, Dense):
        inner = mlp.intermediate // b.plan.tp
        return _add_dense(b, "", mlp, inner, source), True
    return _add_experts(b, mlp, source)


def _add_dense(b: Builder, name: str, mlp: Mlp, inner: int, source: str | None) -> str:
    """Up, activation, down of an MLP whose part on this chip is ``inner`` wide."""
    tokens, hidden, module = b.tokens, b.model.hidden, "shared" if name else "mlp"
    up = b.weight(
        f"{name}gate_up" if mlp.gated else f"{name}up",
        tokens,
        inner * (2 if mlp.gated else 1),
        hidden,
        module=module,
    )
    wide = b.add(up, module, source)
    function = Activation(
        f"{b.prefix}{name}activation", tokens * inner, b.vector, mlp.activation, mlp.gated
    )
    active = b.add(function, "activation", wide)
    return b.add(b.weight(f"{name}down", tokens, hidden, inner, module=module), module, active)


def _add_experts(b: Builder, mlp: Experts, source: str | None) -> tuple[str, bool]:
    """Router, routed and shared experts, and what travels between chips."""
    tokens, hidden, plan = b.tokens, b.model.hidden, b.plan
    choices = mlp.experts + mlp.identity_experts
    router = b.weight("router", tokens, choices, hidden, module="router")
    scored = b.add(router, "router", source)
    chosen = b.add(
        Softmax(f"{b.prefix}router_softmax", tokens, choices, b.vector), "router", scored
    )
    travels = plan.stage_chips > plan.tp
    rows: list[str | None] = [source]
    if mlp.latent is not None:
        down = b.weight("latent_in", tokens, mlp.latent, hidden, module="shared")
        rows = [b.add(down, "shared", source)]
    if travels:
        rows = [_add_dispatch(b, mlp, *rows, chosen)]
    routed = _add_routed(b, mlp, *rows, chosen)
    if travels:
        routed = _add_combine(b, mlp, routed)
    if mlp.latent is not None:
        up = b.weight("latent_out", tokens, hidden, mlp.latent, module="shared")
        routed = b.add(up, "shared", routed)
    if mlp.shared_intermediate:
        inner = mlp.shared_intermediate // plan.tp
        shared = _add_dense(b, "shared_", mlp, inner, source)
        total = b.elementwise("shared_sum", tokens * hidden, 2, 1)
        routed = b.add(total, "elementwise", routed, shared)
    # Tokens that travelled come back whole, split over the tp chips; sums do not.
    partial = not travels or plan.expert_tp > 1 or mlp.shared_intermediate > 0
    if travels and plan.tp > 1 and not partial:
        size = b.size(tokens * hidden)
        routed = b.exchange(AllGather, "gather_tokens", size, "tp", routed)
    return routed, partial


def _add_routed(b: Builder, mlp: Experts, *after: str | None) -> str:
    """The products of all experts of this chip, and the weighted sum of their results."""
    plan, width = b.plan, mlp.latent or b.model.hidden
    loads = rank_loads(mlp.experts, mlp.working, b.everywhere, plan.ep, b.load)
    inner = mlp.intermediate // plan.expert_tp
    name = "experts_gate_up" if mlp.gated else "experts_up"
    up = _grouped(b, name, loads, inner * (2 if mlp.gated else 1), width)
    wide = b.add(up, "experts", *after)
    function = Activation(
        f"{b.prefix}experts_activation",
        math.ceil(up.rows * inner),
        b.vector,
        mlp.activation,
        mlp.gated,
    )
    active = b.add(function, "activation", wide)
    down = b.add(_grouped(b, "experts_down", loads, width, inner), "experts", active)
    total = b.elementwise("experts_sum", math.ceil(up.rows * width), 1, 2)
    return b.add(total, "elementwise", down)


def _grouped(b: Builder, name: str, loads: tuple[RankLoad, ...], n: int, k: int) -> GroupedGemm:
    own, weights = b.activations, b.precision.weights_of("experts")
    sums = b.precision.accumulate
    return GroupedGemm(b.prefix + name, loads, n, k, own, weights, own, sums)


def _travelling(b: Builder, mlp: Experts) -> tuple[float, float]:
    """Bytes that a chip gathers after, and sends in, the exchange with the experts."""
    plan, width = b.plan, mlp.latent or b.model.hidden
    rank = plan.tp  # chips that have the same tokens
    tokens = b.size(b.tokens * width)
    copies = expert_copies(mlp.experts, mlp.top_k, plan.ep, mlp.identity_experts)
    if plan.expert_tp > rank:  # each sends its part; those that share an expert gather them
        return tokens * copies * plan.expert_tp / rank, tokens * copies / rank
    return 0.0, tokens * copies * plan.expert_tp / rank


def _add_dispatch(b: Builder, mlp: Experts, *after: str | None) -> str:
    """Tokens to the chips of their experts."""
    gathered, sent = _travelling(b, mlp)
    last = ""
    if b.plan.ep > 1:
        last = b.exchange(AllToAll, "dispatch", sent, "ep", *after)
    if gathered:
        last = b.exchange(
            AllGather, "gather_rows", gathered, "expert_tp", *([last] if last else after)
        )
    return last


def _add_combine(b: Builder, mlp: Experts, last: str) -> str:
    """Results back to the chips of their tokens, added up."""
    gathered, sent = _travelling(b, mlp)
    if gathered:
        last = b.exchange(ReduceScatter, "scatter_sums", gathered, "expert_tp", last)
    if b.plan.ep > 1:
        last = b.exchange(AllToAll, "combine", sent, "ep", last)
    return last


def add_reduced(b: Builder, block: str, output: str) -> str:
    """Partial outputs summed over the tp chips."""
    if b.plan.tp == 1:
        return output
    size = b.size(b.tokens * b.model.hidden)
    return b.exchange(AllReduce, f"all_reduce_{block}", size, "tp", output)
