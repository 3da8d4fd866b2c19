"""Cases: a reference figure with what it takes to estimate the same thing.

reference row -> case -> points (reference and estimate side by side)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chipsim.execution import Execution, Launch
from chipsim.ops.graph import Phase, layer_graph
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import (
    Activation,
    AllReduce,
    Gemm,
    Norm,
    Operator,
    Softmax,
)
from chipsim.ops.parallelism import Parallelism
from chipsim.performance import PerformanceModel

if TYPE_CHECKING:
    from chipsim.validation.subjects import Subject

SMALL = 5e-6
"""Seconds: an operator whose ideal time is below is judged apart, as ``small``."""

LABELS = {
    "gemm": "matmul",
    "batched_gemm": "batched_matmul",
    "softmax": "softmax",
    "norm": "layernorm",
    "activation": "gelu",
    "all_reduce": "allreduce",
    "elementwise": "others",
    "layer": "layer",
    "step": "total",
}
"""Names of operators in results: those of LLMCompass, by ours."""

NODES = {
    "gemm": ("qkv", "query", "key", "value", "output_projection", "up", "down"),
    "batched_gemm": ("scores", "values"),
    "softmax": ("softmax",),
    "norm": ("norm_attention", "norm_mlp"),
    "activation": ("activation",),
    "all_reduce": ("all_reduce_attention", "all_reduce_mlp"),
    "elementwise": ("residual_attention", "residual_mlp"),
}
"""Nodes of a layer's graph that each class of operators sums up."""


class Point(NamedTuple):
    """One reference figure and the estimate of it; seconds, or ratios where ``unit`` is 1."""

    suite: str
    chip: str
    operator: str
    dtype: str
    regime: str
    shape: str
    unit: str
    reference: float
    estimate: float
    error: float  # estimate / reference - 1
    bound: str
    execution: str
    source: str
    whole: bool  # not a part of another point of the suite


def point(  # noqa: D103 - a Point whose error is worked out
    suite: str,
    chip: str,
    operator: str,
    dtype: str,
    regime: str,
    shape: str,
    reference: float,
    estimate: float,
    *,
    unit: str = "s",
    bound: str = "",
    execution: str = "",
    source: str = "",
    whole: bool = True,
) -> Point:
    return Point(
        suite,
        chip,
        operator,
        dtype,
        regime,
        shape,
        unit,
        reference,
        estimate,
        estimate / reference - 1.0,
        bound,
        execution,
        source,
        whole,
    )


@dataclass(slots=True)
class Judge:
    """Estimates what cases ask for; performance models are kept between them.

    Parameters
    ----------
    execution : str, optional
        Block for all chips; each chip's own unless given.
    """

    execution: str | None = None
    _models: dict[tuple[Subject, Launch | None], PerformanceModel] = field(default_factory=dict)

    def model(self, subject: Subject, launch: Launch | None = None) -> PerformanceModel:
        """The performance model of a subject.

        Parameters
        ----------
        launch : Launch, optional
            Launch times to use where the block names none.
        """
        known = self._models.get((subject, launch))
        if known is None:
            chip = subject.build()
            block = Execution.load(self.execution or subject.execution or chip.execution)
            if launch is not None and block.launch == Launch():
                block = block.model_copy(update={"launch": launch})
            known = self._models[subject, launch] = PerformanceModel(chip, block)
        return known


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """Latency of one operator.

    Attributes
    ----------
    kind : str
        Key of `LABELS`.
    reference : float
        Seconds.
    launch : bool
        The reference contains the fixed time of a kernel.
    other : float
        Seconds that LLMCompass gives for the same (0: not known).
    """

    suite: str
    subject: Subject
    kind: str
    dtype: str
    operator: Operator
    reference: float
    launch: bool
    source: str
    other: float = 0.0

    def points(self, judge: Judge) -> Iterator[Point]:
        """The case judged; LLMCompass's own figure, if any, in a suite of its own."""
        model = judge.model(self.subject)
        estimate = model.estimate(self.operator)
        seconds = estimate.latency_s
        if not self.launch:
            seconds -= estimate.parts["launch"]
        moved = self.operator.bytes / model.chip.memory.bandwidth
        for suite, value in ((self.suite, seconds), (f"{self.suite}-llmcompass", self.other)):
            if value:
                yield point(
                    suite,
                    self.subject.label,
                    LABELS[self.kind],
                    self.dtype,
                    _regime(self.kind, moved, estimate.lower_bound_s),
                    _shape(self.operator),
                    self.reference,
                    value,
                    bound=estimate.bound if suite == self.suite else "",
                    execution=model.execution.name if suite == self.suite else "",
                    source=self.source,
                )


@dataclass(frozen=True, slots=True)
class LayerCase:
    """Latency of a layer, and of its operators by class.

    Attributes
    ----------
    references : mapping of str to float
        Seconds by key of `LABELS`; ``step`` is ``model.layers`` times ``layer``.
    residuals : bool
        The reference counts residual additions.
    launch : Launch, optional
        Fixed times that the reference contains, for a block that names none.
    others : mapping of str to float
        Seconds that LLMCompass gives for the same.
    """

    suite: str
    subject: Subject
    model: ModelSpec
    tp: int
    phase: Phase
    dtype: str
    references: Mapping[str, float]
    residuals: bool
    source: str
    launch: Launch | None = None
    others: Mapping[str, float] = field(default_factory=dict)

    def points(self, judge: Judge) -> Iterator[Point]:
        """The case judged; LLMCompass's own figures, if any, in a suite of their own."""
        model = judge.model(self.subject, self.launch)
        estimates = self.estimates(model)
        largest = next((key for key in ("step", "layer") if key in self.references), "")
        for key, reference in self.references.items():
            for suite, values in (
                (self.suite, estimates),
                (f"{self.suite}-llmcompass", self.others),
            ):
                if key in values:
                    yield point(
                        suite,
                        self.subject.label,
                        LABELS[key],
                        self.dtype,
                        self.phase.kind,
                        self.shape,
                        reference,
                        values[key],
                        execution=model.execution.name if suite == self.suite else "",
                        source=self.source,
                        whole=key == largest or not largest,
                    )

    @property
    def shape(self) -> str:
        """Phase and cut in words."""
        words = [f"batch {self.phase.batch}", f"context {self.phase.context}", f"tp {self.tp}"]
        if self.subject.cores:
            words.append(f"{self.subject.cores} cores")
        if self.subject.memory_bandwidth:
            words.append(f"{self.subject.memory_bandwidth / 1e9:.6g} GB/s")
        return ", ".join(words)

    def estimates(self, model: PerformanceModel) -> dict[str, float]:
        """Seconds by class of operators, of the layer and of all layers.

        Attention is unfused, as in the reference; the other switches are the block's.
        """
        kernels = model.execution.kernels
        graph = layer_graph(
            self.model,
            self.phase,
            Parallelism(tp=self.tp),
            attention="unfused",
            qkv=kernels.qkv,
            vector_format=kernels.vector_format,
        )
        seconds = {row.name: row.latency_s for row in model.rows(graph.nodes)}
        values = {
            kind: sum(seconds.get(node, 0.0) for node in nodes)
            for kind, nodes in NODES.items()
            if self.residuals or kind != "elementwise"
        }
        layer = sum(values.values())
        return values | {"layer": layer, "step": self.model.layers * layer}


def operator_of(
    kind: str, dtype: str, m: int, n: int = 1, k: int = 1, batch: int = 1, chips: int = 1
) -> Operator:
    """An operator from the sizes of a table.

    Parameters
    ----------
    kind : str
        ``gemm, softmax, norm, activation`` or ``all_reduce``.
    m, n, k, batch : int
        Of the product; vector operators have m rows of n; a collective moves m bytes.
        A batch of products is one of activations, a single product has a weight.
    """
    if kind == "gemm":
        return Gemm("product", m, n, k, batch, dtype, dtype, dtype, batch == 1)
    if kind == "softmax":
        return Softmax("softmax", m, n, dtype)
    if kind == "norm":
        return Norm("layernorm", m, n, dtype)
    if kind == "activation":
        return Activation("gelu", m * n, dtype)
    return AllReduce("allreduce", m, chips)


def bare_model(name: str, hidden: int, heads: int, layers: int = 1) -> ModelSpec:
    """The layer that LLMCompass prices: MHA, LayerNorm, GELU, an MLP of 4 x hidden.

    Raises
    ------
    ConfigError
        The heads do not divide the hidden size.
    """
    return ModelSpec.build(
        name,
        name=name,
        source="LLMCompass, software_model/transformer.py",
        layers=layers,
        hidden=hidden,
        heads=heads,
        intermediate=4 * hidden,
        vocabulary=1,
        norm="layernorm",
        activation="gelu",
        position="alibi",
    )


def _regime(kind: str, memory: float, ideal: float) -> str:
    """Which term of the roofline binds (``ideal`` is the larger of them, seconds)."""
    if kind == "all_reduce":
        return "link"
    if ideal < SMALL:
        return "small"
    return "memory" if memory >= ideal else "compute"


def _shape(operator: Operator) -> str:
    if isinstance(operator, Gemm):
        batch = f"{operator.batch} x " if operator.batch > 1 else ""
        return f"{batch}{operator.m} x {operator.n} x {operator.k}"
    if isinstance(operator, Softmax | Norm):
        return f"{operator.rows} x {operator.columns}"
    if isinstance(operator, Activation):
        return f"{operator.elements}"
    if isinstance(operator, AllReduce):
        return f"{operator.bytes:.0f} bytes over {operator.chips}"
    return operator.name
