"""Reads the column names that outputs of LLMCompass come in; see `validate` for the files.

file -> reader, by its columns or its stem -> cases, and what was passed over
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from chipsim.execution import Launch
from chipsim.ops.graph import Phase
from chipsim.ops.model import ModelSpec
from chipsim.validation.cases import LayerCase, OperatorCase, bare_model, operator_of
from chipsim.validation.subjects import PUBLIC, SILICON, TABLES, Subject
from chipsim.validation.table import Row, Table

Case = OperatorCase | LayerCase
Reader = Callable[[Table, "list[Skipped]"], Iterator[Case]]


class Skipped(NamedTuple):
    """What was not judged: a file, or a file and one of its columns or devices; and why."""

    name: str
    why: str


DTYPES = {1: "int8", 2: "fp16", 4: "fp32"}
"""Formats by bytes per element: LLMCompass knows no more of them."""

WIDE_VECTORS = ("llmcompass-mi210", "llmcompass-tpu-v3")
"""Chips whose vector units move 4-byte words whatever the tensor (compute_module.py)."""

OPERATORS = {
    "matmul": "gemm",
    "softmax": "softmax",
    "layernorm": "norm",
    "gelu": "activation",
    "allreduce": "all_reduce",
}
"""Kinds by stem of a file, and by ``operator`` of a silicon file."""

TABLE_COLUMNS = {
    "gemm": "matmul_s",
    "batched_gemm": "batched_matmul_s",
    "softmax": "softmax_s",
    "norm": "layernorm_s",
    "activation": "gelu_s",
    "all_reduce": "allreduce_s",
    "elementwise": "others_s",
    "layer": "layer_s",
    "step": "total_s",
}
"""Columns of the author's BLOOM tables by kind."""

LAYER_ITEMS = {
    "gemm": ("Q_K_V", "Wo_proj", "W1_proj", "W2_proj"),
    "batched_gemm": ("Q_mul_K", "A_mul_V"),
    "softmax": ("Softmax",),
    "norm": ("LayerNorm_MHA", "LayerNorm_FFN"),
    "activation": ("GeLU",),
    "all_reduce": ("AllReduce_MHA", "AllReduce_FFN"),
}
"""Items of LLMCompass's layer by kind (transformer.py)."""

OVERHEADS = Launch(gemm=21e-6, batched_gemm=21e-6, softmax=12e-6, norm=45e-6, activation=45e-6)
"""Fixed times that its transformer.py adds on an A100, and on any chip from JSON."""
MI210_OVERHEADS = Launch(
    gemm=34e-6, batched_gemm=34e-6, softmax=22e-6, norm=28e-6, activation=21e-6
)
TPU_OVERHEADS = Launch(
    gemm=110e-6, batched_gemm=110e-6, softmax=300e-6, norm=140e-6, activation=100e-6
)

MEASURED_LAYER = {"prefill": Phase.prefill(8, 2048), "decode": Phase.decode(8, 3072 + 1)}
"""Phases of the GPT-3 layer that its artifact measured on 4 A100 (figure 5i-l)."""

UNUSED = (
    "group",
    "set",
    "sweep",
    "model",
    "channels",
    "core_frac",
    "mem_bw_frac",
    "overhead_s",
    "sim_latency_with_overhead_s",
    "true_roofline_s",
    "roofline_latency_s",
    "roofline_as_coded_s",
    "roofline_latency_s_as_coded",
    "mappings_simulated",
    "best_mapping",
    "signed_err_pct",
)
"""Columns that are known and add nothing to judge."""


RESOURCES = {"core_frac": "cores", "mem_bw_frac": "mem_bw_Bps", "channels": "mem_bw_Bps"}
"""Columns that say again what another one says, which is read."""

LAYER_COLUMNS = (
    "system",
    "tp",
    "d_model",
    "n_heads",
    "phase",
    "batch",
    "seq_or_ctx",
    "latency_s",
)
AUTHOR_COLUMNS = ("hardware", "phase", "batch", "context", "total_s")
SILICON_COLUMNS = ("operator", "device", "M", "K", "N", "real_s")
"""Columns without which a file of layers, an author's table or measurements say nothing."""


def reader_of(table: Table) -> Reader | None:
    """The reader for a table, by its columns and by its stem; None: not one of these."""
    columns, stem = set(table.columns), table.stem
    if set(AUTHOR_COLUMNS) <= columns:
        return read_tables
    if stem.startswith("llmcompass_bloom"):
        return read_tables
    layer = {"system", "phase", "seq_or_ctx", "latency_s"} <= columns
    if layer or stem.startswith(("transformer", "sweep_")):
        return read_layers
    if stem.startswith("silicon") or {"operator", "device", "real_s"} <= columns:
        return read_silicon
    if any(stem == name or stem.startswith(f"{name}_") for name in OPERATORS):
        return read_operators
    return None


def needed_by(reader: Reader, table: Table) -> tuple[str, ...]:
    """The columns without which a reader cannot read a table."""
    if reader is read_operators:
        device, sizes = _columns_of(_kind_of(table))
        return (device, *sizes, "sim_latency_s")
    if reader is read_layers:
        return LAYER_COLUMNS
    return AUTHOR_COLUMNS if reader is read_tables else SILICON_COLUMNS


def _kind_of(table: Table) -> str:
    return next(kind for name, kind in OPERATORS.items() if table.stem.startswith(name))


def _columns_of(kind: str) -> tuple[str, tuple[str, ...]]:
    """The column that names the device, and those of the sizes."""
    if kind == "all_reduce":
        return "system", ("bytes",)
    return "device", ("M", "K", "N") if kind == "gemm" else ("M", "N")


def read_operators(table: Table, skipped: list[Skipped]) -> Iterator[OperatorCase]:
    """Single operators of the public LLMCompass, launch left out of both sides."""
    kind = _kind_of(table)
    collective = kind == "all_reduce"
    device, sizes = _columns_of(kind)
    optional = (
        () if collective else ("batch", "dtype_bytes") if kind == "gemm" else ("dtype_bytes",)
    )
    if "real_A100x4_latency_s" in table.columns:
        why = "measured: judged where a silicon_… file has it"
        skipped.append(Skipped(f"{table.name}: real_A100x4_latency_s", why))
    known = {device, *sizes, *optional, "sim_latency_s", "real_A100x4_latency_s"}
    _name_unknown(table, known, skipped)
    for row, subject in _subjects(table, device, PUBLIC, skipped):
        yield _public_operator(row, subject, kind, sizes)


def _public_operator(
    row: Row, subject: Subject, kind: str, sizes: tuple[str, ...]
) -> OperatorCase:
    size = {name: row.whole(name) for name in sizes}
    batch, dtype = row.whole("batch", 1), _dtype(row)
    if kind == "all_reduce":
        m, n, k = size["bytes"], 1, 1
    else:
        m, n, k = size["M"], size["N"], size.get("K", 1)
    if kind != "gemm" and subject.chip in WIDE_VECTORS:
        dtype = "fp32"
    operator = operator_of(kind, dtype, m, n, k, batch, subject.chips)
    seconds = row.seconds("sim_latency_s")
    return OperatorCase("public", subject, kind, dtype, operator, seconds, False, row.where)


def read_layers(table: Table, skipped: list[Skipped]) -> Iterator[LayerCase]:
    """Layers of the public LLMCompass: its overheads are in, residual additions are not."""
    items = {f"{item}_s" for names in LAYER_ITEMS.values() for item in names}
    known = {*LAYER_COLUMNS, *items, "cores", "mem_bw_Bps"}
    unread = _unread_resources(table, known)
    if unread:
        why = f"a sweep of {', '.join(unread)}, which is not read: what ran is not known"
        skipped.append(Skipped(table.name, why))
        return
    _name_unknown(table, known, skipped)
    for row, subject in _subjects(table, "system", PUBLIC, skipped):
        yield _public_layer(row, subject)


def _unread_resources(table: Table, known: Iterable[str]) -> list[str]:
    """Columns of a sweep that may cut the chip, are not read and differ between rows.

    Other columns in seconds are results.
    """
    if "sweep" not in table.stem:
        return []
    cuts = [
        column
        for column in table.columns
        if column not in known and column not in UNUSED and not column.endswith("_s")
    ]
    cuts += [
        column
        for column, read in RESOURCES.items()
        if column in table.columns and read not in table.columns
    ]
    return [column for column in cuts if len({row.cells[column] for row in table.rows}) > 1]


def _public_layer(row: Row, whole: Subject) -> LayerCase:
    cores = row.whole("cores") if row.has("cores") else 0
    bandwidth = row.positive("mem_bw_Bps") if row.has("mem_bw_Bps") else 0.0
    hidden, heads = row.whole("d_model"), row.whole("n_heads")
    if hidden % heads:
        raise row.refuse("n_heads", f"a divisor of d_model {hidden}")
    seconds = {
        item: row.seconds(f"{item}_s")
        for names in LAYER_ITEMS.values()
        for item in names
        if row.has(f"{item}_s")
    }
    return LayerCase(
        suite="public-layer",
        subject=Subject(whole.chip, whole.chips, cores, bandwidth),
        model=bare_model(f"layer-{hidden}", hidden, heads),
        tp=row.whole("tp"),
        phase=_phase(row, "seq_or_ctx", generated=1),
        dtype="fp16",
        references=_by_kind(seconds) | {"layer": row.seconds("latency_s")},
        residuals=False,
        source=row.where,
        launch=overheads(whole.chip),
    )


def overheads(chip: str) -> Launch:
    """Fixed times that LLMCompass adds to the kernels of a layer."""
    own = {"llmcompass-mi210": MI210_OVERHEADS, "llmcompass-tpu-v3": TPU_OVERHEADS}
    return own.get(chip, OVERHEADS)


def read_tables(table: Table, skipped: list[Skipped]) -> Iterator[LayerCase]:
    """Latency tables of SPAD's first author: BLOOM-176B, TP8, layers only."""
    _name_unknown(table, {*AUTHOR_COLUMNS, *TABLE_COLUMNS.values()}, skipped)
    bloom = ModelSpec.load("bloom-176b")
    for row, subject in _subjects(table, "hardware", TABLES, skipped):
        yield LayerCase(
            suite="author-tables",
            subject=subject,
            model=bloom,
            tp=8,
            phase=_phase(row, "context"),
            dtype="fp16",
            references={
                kind: row.seconds(column)
                for kind, column in TABLE_COLUMNS.items()
                if row.has(column) or column == "total_s"
            },
            residuals=True,
            source=row.where,
        )


def read_silicon(table: Table, skipped: list[Skipped]) -> Iterator[Case]:
    """Measured operators, and the layer that measured items add up to."""
    _name_unknown(table, {*SILICON_COLUMNS, "sim_s"}, skipped)
    layers: dict[tuple[str, str], list[Row]] = {}
    for row, subject in _subjects(table, "device", SILICON, skipped):
        name, _, item = row.text("operator").partition(".")
        if name in OPERATORS and not item:
            yield _measured_operator(row, subject, OPERATORS[name])
        elif item and name.removeprefix("transformer_") in MEASURED_LAYER:
            layers.setdefault((row.text("device"), name), []).append(row)
        else:
            _once(skipped, f"{table.name}: {row.text('operator')}", "not a known operator")
    for (device, name), rows in layers.items():
        yield _measured_layer(rows, SILICON[device], name.removeprefix("transformer_"))


def _measured_operator(row: Row, subject: Subject, kind: str) -> OperatorCase:
    n = row.whole("N") if kind in ("gemm", "softmax", "norm") else row.whole("N", 1)
    k = row.whole("K") if kind == "gemm" else 1
    operator = operator_of(kind, "fp16", row.whole("M"), n, k, 1, subject.chips)
    simulated = row.seconds("sim_s") if row.has("sim_s") else 0.0
    return OperatorCase(
        "silicon-eager",
        subject,
        kind,
        "fp16",
        operator,
        row.seconds("real_s"),
        True,
        row.where,
        simulated,
    )


def _measured_layer(rows: list[Row], subject: Subject, phase: str) -> LayerCase:
    measured, simulated = (
        {
            row.text("operator").partition(".")[2]: row.seconds(column)
            for row in rows
            if row.has(column)
        }
        for column in ("real_s", "sim_s")
    )
    return LayerCase(
        suite="silicon-layer",
        subject=subject,
        model=bare_model("gpt3-175b", 12288, 96),
        tp=4,
        phase=MEASURED_LAYER[phase],
        dtype="fp16",
        references=_with_sum(_by_kind(measured)),
        residuals=False,
        source=rows[0].where,
        others=_with_sum(_by_kind(simulated)),
    )


def _by_kind(seconds: dict[str, float]) -> dict[str, float]:
    """Sums of items by kind; a kind with an item missing is left out."""
    return {
        kind: sum(seconds[item] for item in items)
        for kind, items in LAYER_ITEMS.items()
        if all(item in seconds for item in items)
    }


def _with_sum(kinds: dict[str, float]) -> dict[str, float]:
    whole = {"layer": sum(kinds.values())} if len(kinds) == len(LAYER_ITEMS) else {}
    return kinds | whole


def _phase(row: Row, context: str, generated: int = 0) -> Phase:
    """Phase of a row; ``generated`` tokens are not counted in its context in decode."""
    batch, tokens = row.whole("batch"), row.whole(context)
    if row.choice("phase", ("prefill", "decode")) == "prefill":
        return Phase.prefill(batch, tokens)
    return Phase.decode(batch, tokens + generated)


def _dtype(row: Row) -> str:
    width = row.whole("dtype_bytes", 2)
    if width not in DTYPES:
        raise row.refuse("dtype_bytes", ", ".join(map(str, DTYPES)))
    return DTYPES[width]


def _subjects(
    table: Table, column: str, known: dict[str, Subject], skipped: list[Skipped]
) -> Iterator[tuple[Row, Subject]]:
    """Rows with the chip that they name; rows of unknown chips are passed over."""
    for row in table.rows:
        name = row.text(column)
        if name in known:
            yield row, known[name]
        else:
            _once(skipped, f"{table.name}: {name}", f"not a known {column}")


def _name_unknown(table: Table, known: Iterable[str], skipped: list[Skipped]) -> None:
    skipped += [
        Skipped(f"{table.name}: {column}", "not a known column")
        for column in table.columns
        if column not in known and column not in UNUSED
    ]


def _once(skipped: list[Skipped], name: str, why: str) -> None:
    if Skipped(name, why) not in skipped:
        skipped.append(Skipped(name, why))
