"""A phase graph that grows: its nodes, and the sizes of the model on one chip.

All sizes are those of the chip that has most to do: of the data-parallel ranks the one with
most sequences, of the pipeline one stage after the other with one part of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from chipsim.ops.formats import get_format
from chipsim.ops.operators import Elementwise, Gemm, Norm, Operator

if TYPE_CHECKING:
    import networkx as nx

    from chipsim.ops.collectives import Collective
    from chipsim.ops.loads import ExpertLoad
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.phase import Segment
    from chipsim.ops.plan import Axis, Parallelism
    from chipsim.ops.precision import Precision

Nodes = Sequence[str | None]
LatentForm: TypeAlias = Literal["expanded", "absorbed"]
"""Form of latent attention in prefill."""
GROUPS: dict[Axis, str] = {
    "tp": "all_reduce",
    "cp": "context_parallel",
    "dcp": "context_parallel",
    "ep": "expert_parallel",
    "expert_tp": "expert_parallel",
    "pp": "pipeline",
}
"""Group of a graph's nodes that an exchange over an axis belongs to."""


@dataclass(frozen=True, slots=True)
class Part:
    """Equal sequences of a step on one chip.

    Attributes
    ----------
    segment : Segment
        The sequences of one rank and one part of the batch.
    query : int
        Tokens of each sequence on this chip (fewer than the segment's with ``cp``).
    everywhere : int
        Tokens of this part over all chips of a stage.
    """

    segment: Segment
    query: int
    everywhere: int

    @property
    def tokens(self) -> int:
        """Tokens on this chip."""
        return self.segment.batch * self.query

    @property
    def spread(self) -> int:
        """Context that gives a context-parallel chip its share of the causal pairs.

        The tokens of a prompt are dealt from both ends, so every chip has as many pairs.
        """
        before = self.segment.context - self.segment.query
        return before + (self.segment.query + self.query + 1) // 2


@dataclass(slots=True)
class Builder:
    """A graph that grows, and what the parts of a layer need to know.

    ``about`` are the attributes of the graph. ``tokens`` are those that the layer works on, on
    this chip; ``everywhere`` over all chips of a stage.
    """

    about: dict[str, Any]
    model: ModelSpec
    plan: Parallelism
    precision: Precision
    load: ExpertLoad
    vector: str
    fused_attention: bool
    fused_qkv: bool
    latent: LatentForm | None = None
    causal: bool = True
    step: tuple[Part, ...] = ()
    parts: tuple[Part, ...] = ()
    tokens: int = 0
    everywhere: int = 0
    prefix: str = ""
    count: int = 1
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)

    @property
    def activations(self) -> str:
        """Format of activations."""
        return self.precision.activations

    def enter(self, parts: tuple[Part, ...], count: int) -> None:
        """Go on with ``count`` layers that work on these parts of the step."""
        self.parts, self.count = parts, count
        self.tokens = sum(part.tokens for part in parts)
        self.everywhere = sum(part.everywhere for part in parts)

    def add(self, operator: Operator, group: str, *after: str | None) -> str:
        """Add an operator that needs the results of ``after``; its name."""
        name = operator.name
        self.nodes[name] = {"operator": operator, "count": self.count, "group": group}
        for source in after:
            if source is not None:
                self.edges.append((source, name))
        return name

    def finish(self) -> nx.DiGraph[str]:
        """The graph; adding all nodes at once is several times as fast as one by one."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph(**self.about)
        graph.add_nodes_from(self.nodes)
        for name, attributes in graph.nodes(data=True):
            attributes.update(self.nodes[name])
        graph.add_edges_from(self.edges)
        return graph

    def weight(
        self, name: str, m: int, n: int, k: int, batch: int = 1, module: str = ""
    ) -> Gemm:
        """A product with a weight matrix of k x n (``batch`` of them)."""
        weights = self.precision.weights_of(module)
        own, name = self.activations, self.prefix + name
        sums = self.precision.accumulate
        return Gemm(name, m, n, k, batch, own, weights, own, accumulate=sums)

    def product(self, name: str, m: int, n: int, k: int, batch: int, cached: str) -> Gemm:
        """A product with cached keys or values, per KV head; query heads share them."""
        own, name = self.activations, self.prefix + name
        return Gemm(name, m, n, k, batch, own, cached, own, False, self.precision.accumulate)

    def norm(self, name: str, rows: int, columns: int = 0) -> Norm:
        """A norm over the hidden size, or an RMS norm over ``columns``."""
        statistic = "rmsnorm" if columns else self.model.norm
        columns = columns or self.model.hidden
        return Norm(self.prefix + name, rows, columns, self.vector, statistic)

    def elementwise(
        self, name: str, elements: int, reads: int, flops: int, form: str = ""
    ) -> Elementwise:
        """Work per element with one write."""
        form = form or self.activations
        return Elementwise(self.prefix + name, elements, form, reads, 1, flops)

    def exchange(
        self, what: type[Collective], name: str, size: float, axis: Axis, *after: str | None
    ) -> str:
        """Add a collective of ``size`` bytes over a group of the plan."""
        chips, stride = self.plan.group(axis)
        return self.add(what(self.prefix + name, size, chips, stride), GROUPS[axis], *after)

    def size(self, elements: float, form: str = "") -> float:
        """Bytes of activations (or of another format)."""
        return elements * get_format(form or self.activations).bytes
