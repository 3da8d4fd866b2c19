"""Operator graphs: a phase of a model under a plan, as one chip of the plan runs it.

``model + phase + plan -> layer_graph -> phase_graph``: nodes are operators with how
often they run, edges are data dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from chipsim.errors import ConfigError
from chipsim.ops.formats import get_format
from chipsim.ops.operators import (
    Activation,
    AllReduce,
    Attention,
    Elementwise,
    Gemm,
    Norm,
    Operator,
    Softmax,
)
from chipsim.ops.parallelism import Parallelism, check
from chipsim.ops.parameters import kv_heads_per_chip, vocabulary_rows
from chipsim.ops.phase import Phase
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    import networkx as nx

    from chipsim.ops.model import ModelSpec

__all__ = ["Phase", "layer_graph", "phase_graph"]

ATTENTION = ("fused", "unfused")
QKV = ("fused", "separate")


def layer_graph(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None = None,
    *,
    attention: Literal["fused", "unfused"] = "fused",
    qkv: Literal["fused", "separate"] = "fused",
    vector_format: str | None = None,
    precision: Precision | None = None,
) -> nx.DiGraph[str]:
    """One layer, each operator once; the arguments are those of `phase_graph`."""
    builder = _builder(
        model,
        phase,
        plan,
        precision,
        vector_format=vector_format,
        attention=attention,
        qkv=qkv,
    )
    _add_layer(builder, count=1, source=None)
    return builder.finish()


def phase_graph(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None = None,
    *,
    attention: Literal["fused", "unfused"] = "fused",
    qkv: Literal["fused", "separate"] = "fused",
    vector_format: str | None = None,
    precision: Precision | None = None,
    layers_only: bool = False,
) -> nx.DiGraph[str]:
    """A whole phase: one layer with its count, the embedding before, the head after.

    Parameters
    ----------
    plan : Parallelism, optional
        Only ``tp`` may differ from 1.
    attention : str
        ``"fused"``, or ``"unfused"``: scores, softmax and values over the full
        rectangle of queries and context, nothing skipped for causality.
    qkv : str
        One projection for query, key and value, or three.
    vector_format : str, optional
        Format of the tensors of norms, softmax, activation and rotary; the activations'
        own unless given. Residual adds and the embedding stay in the activations' format.
    precision : Precision, optional
        Formats of weights, activations and KV cache; fp16 unless given.
    layers_only : bool
        Leave out embedding, final norm and LM head. The head computes only the last
        token of each sequence; gathering its shares over chips is left out.

    Returns
    -------
    networkx.DiGraph
        Node attributes ``operator``, ``count`` and ``group``; graph attributes
        ``model``, ``phase``, ``plan``, ``layers``.

    Raises
    ------
    InfeasibleError
        The plan does not split the model.
    ConfigError, UnknownNameError
        An unknown switch or format.
    """
    builder = _builder(
        model,
        phase,
        plan,
        precision,
        vector_format=vector_format,
        attention=attention,
        qkv=qkv,
    )
    source = None if layers_only else _add_embedding(builder)
    last = _add_layer(builder, count=model.layers, source=source)
    if not layers_only:
        _add_head(builder, last)
    return builder.finish()


@dataclass(slots=True)
class _Builder:
    """A graph that grows, and the sizes of the model on one chip."""

    graph: nx.DiGraph[str]
    model: ModelSpec
    phase: Phase
    tp: int
    heads: int
    kv_heads: int
    activations: str
    weights: str
    kv: str
    vector: str
    fused_attention: bool
    fused_qkv: bool
    nodes: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)

    def add(self, operator: Operator, group: str, count: int, *after: str | None) -> str:
        """Add an operator that needs the results of ``after``; its name."""
        name = operator.name
        self.nodes.append((name, {"operator": operator, "count": count, "group": group}))
        self.edges += [(source, name) for source in after if source is not None]
        return name

    def finish(self) -> nx.DiGraph[str]:
        """The graph; adding all nodes at once is twice as fast as one by one."""
        self.graph.add_nodes_from(self.nodes)
        self.graph.add_edges_from(self.edges)
        return self.graph

    def weight(self, name: str, m: int, n: int, k: int) -> Gemm:
        """A product with a weight matrix of k x n."""
        return Gemm(name, m, n, k, 1, self.activations, self.weights, self.activations)

    def cached(self, name: str, m: int, n: int, k: int) -> Gemm:
        """A product with cached keys or values, per KV head; query heads share them."""
        batch = self.phase.batch * self.kv_heads
        return Gemm(name, m, n, k, batch, self.activations, self.kv, self.activations, False)

    def norm(self, name: str, rows: int) -> Norm:
        """A norm over the hidden size."""
        return Norm(name, rows, self.model.hidden, self.vector, self.model.norm)


def _builder(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None,
    precision: Precision | None,
    *,
    vector_format: str | None,
    attention: str,
    qkv: str,
) -> _Builder:
    import networkx as nx

    plan, precision = plan or Parallelism(), precision or Precision()
    check(model, plan)
    for switch, value, known in (("attention", attention, ATTENTION), ("qkv", qkv, QKV)):
        if value not in known:
            raise ConfigError("kernels", switch, value, ", ".join(known))
    return _Builder(
        graph=nx.DiGraph(model=model.name, phase=phase, plan=plan, layers=model.layers),
        model=model,
        phase=phase,
        tp=plan.tp,
        heads=model.heads // plan.tp,
        kv_heads=kv_heads_per_chip(model, plan.tp),
        activations=precision.activations,
        weights=precision.weights,
        kv=precision.kv,
        vector=vector_format or precision.activations,
        fused_attention=attention == "fused",
        fused_qkv=qkv == "fused",
    )


def _add_layer(builder: _Builder, count: int, source: str | None) -> str:
    """Attention and MLP, each with its norm and residual; the last node's name."""
    middle = _add_attention_block(builder, count, source)
    return _add_mlp_block(builder, count, middle)


def _add_attention_block(b: _Builder, count: int, source: str | None) -> str:
    tokens, model = b.phase.tokens, b.model
    norm = b.add(b.norm("norm_attention", tokens), "norm", count, source)
    queries, cached = _add_qkv(b, count, norm)
    mixed = _add_attention(b, count, queries, cached)
    projection = b.weight("output_projection", tokens, model.hidden, b.heads * model.head_dim)
    output = b.add(projection, "output", count, mixed)
    return _add_reduced_residual(b, "attention", count, output, source)


def _add_qkv(b: _Builder, count: int, norm: str) -> tuple[list[str], list[str]]:
    """Projections and rotary; the nodes that queries and keys, and values, come from."""
    tokens, model = b.phase.tokens, b.model
    q_width, kv_width = b.heads * model.head_dim, b.kv_heads * model.head_dim
    if b.fused_qkv:
        gemm = b.weight("qkv", tokens, q_width + 2 * kv_width, model.hidden)
        rotated = values = [b.add(gemm, "qkv", count, norm)]
    else:
        widths = {"query": q_width, "key": kv_width, "value": kv_width}
        query, key, value = (
            b.add(b.weight(name, tokens, width, model.hidden), "qkv", count, norm)
            for name, width in widths.items()
        )
        rotated, values = [query, key], [value]
    if model.position == "rotary":
        # Two products and a sum per element of query and key, written in place.
        turn = Elementwise("rotary", tokens * (q_width + kv_width), b.vector, 1, 1, 3)
        rotated = [b.add(turn, "elementwise", count, *rotated)]
    return rotated, values


def _add_attention(b: _Builder, count: int, queries: list[str], values: list[str]) -> str:
    phase, width = b.phase, b.model.head_dim
    if b.fused_attention:
        operator = Attention(
            "attention",
            phase.batch,
            b.heads,
            b.kv_heads,
            width,
            width,
            phase.query,
            phase.context,
            q_format=b.activations,
            kv_format=b.kv,
        )
        return b.add(operator, "attention", count, *queries, *values)
    rows = phase.query * (b.heads // b.kv_heads)
    scores = b.add(b.cached("scores", rows, phase.context, width), "attention", count, *queries)
    softmax = Softmax("softmax", phase.batch * b.heads * phase.query, phase.context, b.vector)
    weights = b.add(softmax, "softmax", count, scores)
    mixed = b.cached("values", rows, width, phase.context)
    return b.add(mixed, "attention", count, weights, *values)


def _add_mlp_block(b: _Builder, count: int, source: str) -> str:
    tokens, model = b.phase.tokens, b.model
    inner = model.intermediate // b.tp
    norm = b.add(b.norm("norm_mlp", tokens), "norm", count, source)
    if model.gated:
        up = b.weight("gate_up", tokens, 2 * inner, model.hidden)
    else:
        up = b.weight("up", tokens, inner, model.hidden)
    wide = b.add(up, "mlp", count, norm)
    function = Activation("activation", tokens * inner, b.vector, model.activation, model.gated)
    active = b.add(function, "activation", count, wide)
    down = b.add(b.weight("down", tokens, model.hidden, inner), "mlp", count, active)
    return _add_reduced_residual(b, "mlp", count, down, source)


def _add_reduced_residual(
    b: _Builder, block: str, count: int, output: str, source: str | None
) -> str:
    """Sum partial outputs over the chips, then add the block's own input."""
    elements = b.phase.tokens * b.model.hidden
    if b.tp > 1:
        size = elements * get_format(b.activations).bytes
        reduce = AllReduce(f"all_reduce_{block}", size, b.tp)
        output = b.add(reduce, "all_reduce", count, output)
    residual = Elementwise(f"residual_{block}", elements, b.activations, 2, 1, 1)
    return b.add(residual, "elementwise", count, output, source)


def _add_embedding(b: _Builder) -> str:
    tokens, model = b.phase.tokens, b.model
    # A learned position is a second row to read and to add.
    rows = 2 if model.position == "learned" else 1
    lookup = Elementwise("embedding", tokens * model.hidden, b.activations, rows, 1, rows - 1)
    last = b.add(lookup, "embedding", 1)
    if model.embedding_norm:
        last = b.add(b.norm("norm_embedding", tokens), "norm", 1, last)
    return last


def _add_head(b: _Builder, source: str) -> str:
    sequences = b.phase.batch
    norm = b.add(b.norm("norm_final", sequences), "norm", 1, source)
    head = b.weight("lm_head", sequences, vocabulary_rows(b.model, b.tp), b.model.hidden)
    return b.add(head, "lm_head", 1, norm)
