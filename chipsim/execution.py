"""Execution blocks: the few physical factors between a chip's datasheet and its clock.

A block belongs to a source (silicon of a generation, LLMCompass's tables, a paper's
figures). A factor that a block does not name is neutral: the ideal machine.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from chipsim.arch_configs import load
from chipsim.spec import Spec
from chipsim.units import BytesPerCycle, Capacity, Seconds

Share = Annotated[float, Field(gt=0, le=1, strict=True)]
Overlap = Annotated[float, Field(ge=0, le=1, strict=True)]
Time = Annotated[Seconds, Field(ge=0, le=1e3)]


UNITS = {
    "core_draw": "bytes_per_cycle",
    "core_feed": "bytes_per_cycle",
    "core_store": "bytes_per_cycle",
    "step_latency": "time",
    "sync": "time",
    "tile_latency": "time",
    "tile_draw": "bytes_per_cycle",
    "after": "time",
    "column": "time",
}
"""Fields of a block that carry a unit, by name."""
GROUPS = {"launch": "time", "link": "time", "row_buffer": "capacity"}
"""Groups of fields that all do."""


class Launch(Spec):
    """Fixed time of one kernel by operator class, seconds."""

    gemm: Time = 0.0
    batched_gemm: Time = 0.0
    attention: Time = 0.0
    softmax: Time = 0.0
    norm: Time = 0.0
    activation: Time = 0.0
    elementwise: Time = 0.0
    collective: Time = 0.0


class Sustained(Spec):
    """Sustained fraction of each peak, 0 < x <= 1."""

    tensor: Share = 1.0
    vector: Share = 1.0
    memory: Share = 1.0
    """Of the memory's bandwidth: tiles of a matrix, each of many rows that lie far apart."""
    stream: Share | None = None
    """The same of what lies in the order of addresses: keys and values, and the tensors of
    vector operators. Null: as ``memory``."""
    l2: Share = 1.0
    link: Share = 1.0


class Overlaps(Spec):
    """How much of a load or store runs behind compute: 0 serial ... 1 perfect."""

    weights: Overlap = 1.0
    activations: Overlap = 1.0
    stores: Overlap = 1.0
    vector: Overlap = 1.0
    """Loads and stores of vector operators behind their arithmetic."""
    join: Annotated[float, Field(ge=1, le=100, strict=True)] | None = None
    """Exponent p with which limits of the same bytes join: (a^p + b^p)^(1/p), where a kernel
    is held now by the one and now by the other. Null: compute and memory take the longer of
    the two, memory and what cores draw a p of 2."""


class Loaded(Spec):
    """The clock under load: power holds a kernel that runs for long below the chip's clock."""

    clock: Share = 1.0
    """Part of the clock that is left in the long run."""
    after: Annotated[Seconds, Field(ge=1e-6, le=1e3)] = 1e-2
    """Seconds of a kernel at which half of the rest is gone."""


class Narrow(Spec):
    """Kernels of a format of 8 bits or less: of its quantiser, and of its products."""

    quantisers: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    """Kernels that quantise activations, one launch each."""
    reads: Annotated[int, Field(ge=1, le=10, strict=True)] = 1
    """Times that the quantiser reads its rows: 2 where a scale is that of a whole row."""
    column: Annotated[Seconds, Field(ge=0, le=1)] = 0.0
    """Seconds of a product per output feature: scales of weights laid out at each call."""
    blocks: StrictBool = False
    """Products in tiles of 64 and 128 only, and k whole."""
    steps: Annotated[float, Field(ge=1, le=10, strict=True)] = 1.0
    """Latencies of a step along k: 2 where it waits for scales of its own."""
    raster: Literal["any", "lines"] = "any"
    """Order of a product's tiles: any, or along one row or column of the results after the
    other, so that what L2 does not hold of the other operand is read again for each."""
    sum_flops: Annotated[float, Field(ge=0, le=100, strict=True)] = 0.0
    """Vector FLOP per sum and 128 of k: 2 where arrays cannot scale blocks themselves."""

    @property
    def tiles(self) -> tuple[bool, float, float]:
        """``blocks, step_scale, sum_flops`` of `chipsim.kernels.gemm.Shape`."""
        return self.blocks, self.steps, self.sum_flops


class Links(Spec):
    """What a communication library adds to the links of a node, seconds."""

    hop: Time = 0.0
    """One step around the chips."""
    start: Time = 0.0
    """Until the protocol that moves much is under way."""


class RowBuffer(Spec):
    """Longest row that a kernel keeps on chip; longer ones are read once per pass."""

    softmax: Annotated[Capacity, Field(gt=0)] | None = None
    norm: Annotated[Capacity, Field(gt=0)] | None = None


class Fused(Spec):
    """How the source's kernels of fused attention cut their work."""

    least_rows: Literal[16, 32, 64, 128, 256] = 16
    """Query rows of a tile; rows that are not there are computed all the same."""
    most_rows: Literal[16, 32, 64, 128, 256] = 256
    scores: Annotated[int, Field(ge=256, le=65536, strict=True)] | None = None
    """Rows times keys of a tile and one block of keys; null: any that SRAM holds."""
    chunk: Annotated[int, Field(ge=1, le=1024, strict=True)] = 1
    """Keys that a tile draws at a time, whether they are there or not."""
    prefetch: StrictBool = True
    """A tile's first keys come behind other work of its core, else it waits for them."""
    resident: Annotated[int, Field(ge=1, le=32, strict=True)] = 1
    """Tiles of a single query per sequence that a core works on at once."""
    prompt_split: StrictBool = True
    """Keys are split over cores also where a KV head has several tiles of a prompt."""
    latent_split: StrictBool = True
    """Keys of latent attention are split over cores."""
    packed_prompts: StrictBool = True
    """A tile packs the rows of all query heads of a KV head, else of single queries only."""
    merge: Literal["same", "kernel"] = "same"
    """What merges split keys: the same kernel, or one more (``launch.elementwise``)."""


class Kernels(Spec):
    """Which kernels the source runs: switches, not factors."""

    attention: Literal["fused", "unfused"] = "fused"
    """One FlashAttention-style kernel, or scores, softmax and values apart."""
    fused: Fused = Fused()
    qkv: Literal["fused", "separate"] = "fused"
    """One projection GEMM for query, key and value, or three."""
    vector_format: str | None = None
    """Format of the tensors of vector operators; null: the activations' own."""
    row_buffer: RowBuffer = RowBuffer()
    """Null: rows of any length stay on chip, so each is read once."""
    tiles: Literal["any", "square-powers-of-two"] = "any"
    """Core tiles that the source's mapper tries."""
    multicast: StrictBool = True
    """Cores that run together share one read of a panel from L2."""
    collectives: Literal["ideal", "nccl"] = "ideal"
    """Exchanges in a node: the links alone, or NCCL's protocols with the factors of `Links`."""
    merged_split: StrictBool = False
    """Partial sums of a split k merge without traffic, else through L2 (or memory)."""
    narrow: dict[str, Narrow] = Field(default_factory=dict)
    """Quantisers, and products of 8 bits and less, by format (of the weights)."""


class Fitted(Spec):
    """What a block was fitted to, and the command that fits it again."""

    to: str
    command: str
    report: str = ""


class Execution(Spec):
    """A named set of physical factors with its provenance."""

    name: str
    source: str
    fitted: Fitted | None = None
    """Null: nothing in the block was fitted."""
    launch: Launch = Launch()
    sustained: Sustained = Sustained()
    overlap: Overlaps = Overlaps()
    link: Links = Links()
    core_draw: Annotated[BytesPerCycle, Field(ge=1e-6, le=1e9)] | None = None
    """Bytes per tensor-clock cycle that one core can draw from memory; null: unlimited."""
    core_feed: Annotated[BytesPerCycle, Field(ge=1e-6, le=1e9)] | None = None
    """Bytes per tensor-clock cycle that a core takes in from L2, per row and column of its
    arrays: they take operands at their edges, and a core's paths are sized with them."""
    core_store: Annotated[BytesPerCycle, Field(ge=1e-6, le=1e9)] | None = None
    """The same for results on their way out, which nothing hides."""
    step_latency: Time = 0.0
    """Least time of a core for one step along k, 128 bytes of a row of A; seconds."""
    sync: Time = 0.0
    """Meeting of all cores before the parts of a split k are added up; seconds."""
    tile_latency: Time = 0.0
    """A tile of fused attention beside its blocks of keys; seconds."""
    tile_draw: Annotated[BytesPerCycle, Field(ge=1e-6, le=1e9)] | None = None
    """Bytes per tensor-clock cycle, and row and column of a core's arrays, in which a tile
    of fused attention takes its keys and values; null: unlimited."""
    scatter: Annotated[float, Field(ge=1, le=100, strict=True)] = 1.0
    """Time of moving scattered rows over that of a stream."""
    loaded: Loaded = Loaded()
    exp_flops: Annotated[float, Field(ge=1, le=1e4, strict=True)] = 4.0
    """Vector FLOP that one exponential costs."""
    l2_residency: Overlap = 0.5
    """Part of L2 that may keep an operand between rasters; the rest streams."""
    kernels: Kernels = Kernels()

    @classmethod
    def load(cls, name: str) -> Execution:
        """Read a block by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("executions", name)
        return cls.read(data, path)
