"""Operator graphs: a phase of a model under a plan, as one chip of the plan runs it.

``model + phase + plan -> layers of each kind -> phase_graph``: nodes are operators with how
often they run, edges are data dependencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.collectives import SendRecv
from chipsim.ops.graph_attention import add_mixer, add_sequences
from chipsim.ops.graph_builder import Builder, LatentForm, Part
from chipsim.ops.graph_mlp import add_mlp, add_reduced
from chipsim.ops.graph_per_layer import add_per_layer, add_per_layer_inputs
from chipsim.ops.graph_streams import add_gathering, add_mixing
from chipsim.ops.loads import UNIFORM, ExpertLoad
from chipsim.ops.parallelism import check
from chipsim.ops.parameters import vocabulary_rows
from chipsim.ops.phase import Phase, Segment
from chipsim.ops.plan import Parallelism
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    import networkx as nx

    from chipsim.ops.layers import Layer
    from chipsim.ops.model import ModelSpec

__all__ = [
    "SEQUENCE_GROUPS",
    "GraphOptions",
    "Nodes",
    "Phase",
    "layer_graph",
    "phase_graph",
    "phase_nodes",
    "sequence_nodes",
]

SEQUENCE_GROUPS = frozenset({"attention", "softmax", "indexer", "context_parallel"})
"""Groups of nodes that go with the lengths of sequences; all others with tokens alone."""

ONE_CHIP, PLAIN = Parallelism(), Precision()
"""Plan and formats where none are named: one object each, so that what is remembered by it is
found at once."""
ATTENTION = ("fused", "unfused")
QKV = ("fused", "separate")
LATENT: tuple[LatentForm, ...] = ("expanded", "absorbed")

Nodes = dict[str, dict[str, Any]]
"""Attributes of nodes by name: ``operator``, ``count`` and ``group``."""


class GraphOptions(TypedDict, total=False):
    """Keywords of `phase_graph` beside model and phase."""

    plan: Parallelism | None
    attention: Literal["fused", "unfused"]
    qkv: Literal["fused", "separate"]
    latent: LatentForm | None
    vector_format: str | None
    precision: Precision | None
    load: ExpertLoad


def layer_graph(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None = None,
    *,
    attention: Literal["fused", "unfused"] = "fused",
    qkv: Literal["fused", "separate"] = "fused",
    latent: LatentForm | None = None,
    vector_format: str | None = None,
    precision: Precision | None = None,
    load: ExpertLoad = UNIFORM,
    layer: str | None = None,
) -> nx.DiGraph[str]:
    """One layer, each operator once; the arguments are those of `phase_graph`.

    Parameters
    ----------
    layer : str, optional
        Name of its kind, where the model has several; the first layer unless given.

    Raises
    ------
    ConfigError
        No layer of that name, or it does not run in the phase.
    """
    builder = _builder(
        model, phase, plan, attention, qkv, latent, vector_format, precision, load
    )
    kinds = {group.layer.name: group.layer for group in model.groups}
    name = layer or model.sequence[0].name
    if name not in kinds:
        raise ConfigError(model.name, "layer", name, ", ".join(kinds))
    if not _enter(builder, kinds[name], 1):
        raise ConfigError(model.name, "layer", name, f"a layer that runs in {phase.kind}")
    _add_layer(builder, kinds[name], None)
    return builder.finish()


def phase_graph(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None = None,
    *,
    attention: Literal["fused", "unfused"] = "fused",
    qkv: Literal["fused", "separate"] = "fused",
    latent: LatentForm | None = None,
    vector_format: str | None = None,
    precision: Precision | None = None,
    load: ExpertLoad = UNIFORM,
    layers_only: bool = False,
) -> nx.DiGraph[str]:
    """A whole phase: a layer of each kind with its count, embedding before, head after.

    Parameters
    ----------
    plan : Parallelism, optional
        The phase's sequences are those of the whole plan: its data-parallel ranks share
        them, and pipeline stages work on a part each (`Parallelism.stage_batch`); the
        graph is what one part meets on its way through all stages.
    attention : str
        ``"fused"``, or ``"unfused"``: scores, softmax and values over the full
        rectangle of queries and context, nothing skipped for causality. Latent attention
        is always fused.
    qkv : str
        One projection for query, key and value, or three.
    latent : str, optional
        Form of latent attention in prefill (decode is absorbed): ``"expanded"`` makes keys
        and values of every head of the whole context, and masks those that an indexer did
        not pick; ``"absorbed"`` reads the rows, or those that were picked. Expanded unless
        given, with an indexer absorbed.
    vector_format : str, optional
        Format of the tensors of norms, softmax, activation and rotary; the activations'
        own unless given. Residual adds and the embedding stay in the activations' format.
    precision : Precision, optional
        Formats of weights, activations and KV cache; fp16 unless given.
    load : ExpertLoad
        How tokens spread over experts; evenly unless given.
    layers_only : bool
        Leave out embedding, final norm and LM head. The head computes only the last
        token of each prompt; gathering its shares over chips is left out.

    Returns
    -------
    networkx.DiGraph
        Node attributes ``operator``, ``count`` and ``group``; graph attributes
        ``model``, ``phase``, ``plan``, ``layers``. With several kinds of layers a node's
        name starts with its kind's, as ``moe.router``.

    Raises
    ------
    InfeasibleError
        The plan does not split the model.
    ConfigError, UnknownNameError
        An unknown switch or format, a histogram of another number of experts, or an
        encode phase of a model without encoder.
    """
    builder = _grown(
        model,
        phase,
        layers_only,
        plan=plan,
        attention=attention,
        qkv=qkv,
        latent=latent,
        vector_format=vector_format,
        precision=precision,
        load=load,
    )
    return builder.finish()


def phase_nodes(
    model: ModelSpec,
    phase: Phase,
    *,
    layers_only: bool = False,
    **options: Unpack[GraphOptions],
) -> Nodes:
    """The nodes of `phase_graph` in its order, for what needs no edges."""
    return _grown(model, phase, layers_only, **options).nodes


def sequence_nodes(model: ModelSpec, phase: Phase, **options: Unpack[GraphOptions]) -> Nodes:
    """The nodes of `phase_graph` that go with the lengths of sequences: `SEQUENCE_GROUPS`.

    Many times as fast to build as the whole.
    """
    builder = _builder(model, phase, **options)
    several = len(model.groups) > 1
    for group in model.groups:
        if _enter(builder, group.layer, group.count) and group.layer.mixer is not None:
            builder.prefix = f"{group.layer.name}." if several else ""
            add_sequences(builder, group.layer.mixer)
    return {n: node for n, node in builder.nodes.items() if node["group"] in SEQUENCE_GROUPS}


def _grown(
    model: ModelSpec, phase: Phase, layers_only: bool, **options: Unpack[GraphOptions]
) -> Builder:
    """All nodes and edges of a phase."""
    if phase.kind == "encode":
        if model.encoder is None:
            raise ConfigError(model.name, "encoder", None, "an encoder, to encode")
        model, layers_only = model.encoder_model, True
    builder = _builder(model, phase, **options)
    last = None if layers_only else _add_embedding(builder)
    several = len(model.groups) > 1
    for group in model.groups:
        if _enter(builder, group.layer, group.count):
            builder.prefix = f"{group.layer.name}." if several else ""
            last = _add_layer(builder, group.layer, last)
    builder.prefix = ""
    if builder.plan.pp > 1:
        last = _add_hand_over(builder, last)
    if not layers_only:
        _add_head(builder, last)
    return builder


def _builder(
    model: ModelSpec,
    phase: Phase,
    plan: Parallelism | None = None,
    attention: str = "fused",
    qkv: str = "fused",
    latent: LatentForm | None = None,
    vector_format: str | None = None,
    precision: Precision | None = None,
    load: ExpertLoad = UNIFORM,
) -> Builder:
    plan, precision = plan or ONE_CHIP, precision or PLAIN
    check(model, plan)
    for switch, value, known in (
        ("attention", attention, ATTENTION),
        ("qkv", qkv, QKV),
        ("latent", latent or "expanded", LATENT),
    ):
        if value not in known:
            raise ConfigError("kernels", switch, value, ", ".join(known))
    return Builder(
        about={"model": model.name, "phase": phase, "plan": plan, "layers": model.layers},
        model=model,
        plan=plan,
        precision=precision,
        load=load,
        vector=vector_format or precision.activations,
        fused_attention=attention == "fused",
        fused_qkv=qkv == "fused",
        latent=latent,
        causal=phase.kind != "encode",
        step=tuple(_part(segment, plan) for segment in phase.segments),
    )


def _part(segment: Segment, plan: Parallelism) -> Part:
    """A segment as one chip meets it: its rank's sequences, its part of their tokens."""
    batch = plan.stage_batch(segment.batch)
    everywhere = min(segment.batch, batch * plan.dp) * segment.query
    query = segment.query if segment.kind == "decode" else -(-segment.query // plan.cp)
    return Part(segment._replace(batch=batch), query, everywhere)


def _enter(b: Builder, layer: Layer, count: int) -> bool:
    """Go on with a kind of layer; False where no part of the step runs it."""
    parts = tuple(
        part
        for part in b.step
        if part.segment.kind == "encode" or part.segment.kind in layer.phases
    )
    b.enter(parts, count)
    return bool(parts)


def _add_layer(b: Builder, layer: Layer, source: str | None) -> str:
    """Attention and MLP, each with its norms and residual; the last node's name."""
    if b.model.parallel_norms and layer.mixer is not None and layer.mlp is not None:
        return _add_side_by_side(b, layer, source)
    last = source
    if layer.mixer is not None:
        inner = _before(b, "attention", last)
        output = add_reduced(b, "attention", add_mixer(b, layer.mixer, inner))
        last = _after(b, "attention", output, last)
    if layer.mlp is not None:
        inner = _before(b, "mlp", last)
        output, partial = add_mlp(b, layer.mlp, inner)
        output = add_reduced(b, "mlp", output) if partial else output
        last = _after(b, "mlp", output, last)
    return add_per_layer(b, str(last))


def _before(b: Builder, block: str, source: str | None) -> str | None:
    """The input of a block: the one stream or the sum of several, normed where pre."""
    if b.model.streams is not None:
        source = add_gathering(b, b.model.streams, b.tokens, block, source)
    if b.model.norm_position == "post":
        return source
    return b.add(b.norm(f"norm_{block}", b.tokens), "norm", source)


def _after(b: Builder, block: str, output: str, source: str | None) -> str:
    """A norm of the output where the model has one, then the block's own input added."""
    if b.model.norm_position != "pre":
        output = b.add(b.norm(f"norm_after_{block}", b.tokens), "norm", output)
    if b.model.streams is not None:
        return add_mixing(b, b.model.streams, block, output, source)
    residual = b.elementwise(f"residual_{block}", b.tokens * b.model.hidden, 2, 1)
    return b.add(residual, "elementwise", output, source)


def _add_side_by_side(b: Builder, layer: Layer, source: str | None) -> str:
    """Attention and MLP of the same input: one sum over chips, one residual."""
    if layer.mixer is None or layer.mlp is None:
        raise InfeasibleError(f"{layer.name}: one block has nothing beside it")
    elements = b.tokens * b.model.hidden
    first = b.add(b.norm("norm_attention", b.tokens), "norm", source)
    second = first
    if b.model.parallel_norms == 2:
        second = b.add(b.norm("norm_mlp", b.tokens), "norm", source)
    mixed = add_mixer(b, layer.mixer, first)
    output, _ = add_mlp(b, layer.mlp, second)
    both = b.add(b.elementwise("sum_blocks", elements, 2, 1), "elementwise", mixed, output)
    reduced = add_reduced(b, "layer", both)
    return add_per_layer(b, _after(b, "layer", reduced, source))


def _add_embedding(b: Builder) -> str:
    _enter_once(b)
    model = b.model
    # A learned position is a second row to read and to add.
    rows = 2 if model.position == "learned" else 1
    last = b.add(
        b.elementwise("embedding", b.tokens * model.hidden, rows, rows - 1), "embedding"
    )
    if model.embedding_norm:
        last = b.add(b.norm("norm_embedding", b.tokens), "norm", last)
    return add_per_layer_inputs(b, last)


def _enter_once(b: Builder) -> None:
    b.enter(b.step, 1)


def _add_hand_over(b: Builder, last: str | None) -> str:
    """Activations from stage to stage, once for each border."""
    _enter_once(b)
    b.count = b.plan.pp - 1
    width = b.model.hidden * (b.model.streams or 1)
    size = b.size(b.tokens * width / b.plan.tp)
    return b.exchange(SendRecv, "send_stage", size, "pp", last)


def _add_head(b: Builder, source: str | None) -> None:
    """Final norm and LM head, in the phases that the last layer runs in."""
    _enter_once(b)
    phases = b.model.sequence[-1].phases
    rows = sum(
        part.tokens if part.segment.kind == "decode" else part.segment.batch
        for part in b.parts
        if part.segment.kind in phases
    )
    if rows and b.model.streams is not None:
        source = add_gathering(b, b.model.streams, rows, "final", source, last=True)
    if rows:
        norm = b.add(b.norm("norm_final", rows), "norm", source)
        columns = vocabulary_rows(b.model, b.plan.tp)
        b.add(
            b.weight("lm_head", rows, columns, b.model.hidden, module="head"), "lm_head", norm
        )
