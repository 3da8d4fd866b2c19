"""SPAD's chips beside ours: price, power, the two curves, mean performance, and a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from chipsim.chip import Chip
from chipsim.cost import chip_cost
from chipsim.ops.operators import LatentAttention
from chipsim.ops.phase import Phase
from chipsim.phases import PhaseModel
from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Figure
from chipsim.validation.spad import BLOCKS, chip_performance, paper_curves, slowdown

if TYPE_CHECKING:
    import pandas as pd

BLOCK = "spad-figures"
"""The execution block of the comparison: fitted to one point of each of the two curves."""

PERFORMANCE = 0.04
"""Tolerance of mean performances."""


def chip_rows() -> Iterator[Figure]:
    """Price and TDP of the chips; the price of HBM moved."""
    for row in reference_table("spad_chips").rows:
        chip = row.text("chip")
        cost = chip_cost(chip)
        ours = {
            "die_usd": cost.die_cost_usd,
            "memory_usd": cost.memory_cost_usd,
            "total_usd": cost.total_usd,
            "cost_hbm6_usd": cost.total.low,
            "cost_hbm12_usd": cost.total.high,
        }
        for column, value in ours.items():
            if row.has(column):
                name = column.removesuffix("_usd").replace("cost_hbm", "total at HBM of $")
                published = row.positive(column)
                yield Figure(f"{chip}: {name}", "physics", published, value, "USD", 2.0)
        area = Chip.load(chip).die_area
        if area is not None:
            yield Figure(f"{chip}: die", "input", row.positive("die_mm2"), area, "mm2")
        watts = _modelled_tdp_w(chip)
        yield Figure(f"{chip}: TDP", "physics", row.positive("tdp_w"), watts, "W", 10.0,
                     "by the paper's formula, not the stated one")  # fmt: skip


def _modelled_tdp_w(chip: str) -> float:
    from chipsim.cost.power import power

    return power(Chip.load(chip)).modelled_tdp_w


def curve_rows() -> Iterator[Figure]:
    """The two slowdown curves."""
    for ref in paper_curves():
        if ref.series != "paper" or ref.slowdown == 1.0:
            continue
        cut = (
            f"{ref.value / 1e9:g} GB/s"
            if ref.phase.kind == "prefill"
            else f"{ref.value:g} cores"
        )
        note = "read off a picture" if ref.mark == "fig" else ""
        yield Figure(
            f"{ref.phase.kind} slowdown at {cut}",
            "physics",
            ref.slowdown,
            slowdown(ref, BLOCK),
            "1",
            0.08 if ref.mark == "fig" else 0.03,
            note,
        )


def curve_frame() -> pd.DataFrame:
    """Both curves, published and under each block: what the report draws."""
    import pandas as pd

    rows = [
        {
            "phase": ref.phase.kind,
            "value": ref.value,
            "published": ref.slowdown,
            **{block: slowdown(ref, block) for block in BLOCKS},
        }
        for ref in paper_curves()
        if ref.series == "paper"
    ]
    return pd.DataFrame(rows)


def performance_rows() -> Iterator[Figure]:
    """Mean performance of the chips over the paper's grid."""
    published = {
        (row.text("chip"), row.text("phase")): row.positive("mean_performance")
        for row in reference_table("spad_performance").rows
    }
    for block in BLOCKS:
        judged = block == BLOCK
        for chip, phase, mean, count in chip_performance(block):
            yield Figure(
                f"{chip}: mean {phase} performance",
                "physics",
                published[chip, phase],
                mean,
                "1",
                PERFORMANCE if judged else None,
                f"{block}, {count} points",
            )


LATENT, LATENT_PLAN = "deepseek-v2", "dp=8,ep=8"
"""A model of latent attention with all its heads on every chip, as the paper reuses it."""

LATENT_STEP = Phase.decode(256, 32768)
"""A step whose contexts are long enough for the cache to be all that is read."""


def latent_remark() -> str:
    """Where the Decode chip's trade fails by physics, computed."""
    said = []
    needed = 0.0
    for chip in ("spad-decode", "spad-h100"):
        model = PhaseModel(
            chip, LATENT, LATENT_PLAN, execution=BLOCK, precision="bf16", check_memory=False
        )
        rows = model.estimate(LATENT_STEP).rows
        found = [(row.estimate, row.estimate.operator) for row in rows]
        each, op = next((e, op) for e, op in found if isinstance(op, LatentAttention))
        needed = op.flops / (op.batch * op.context * op.row_bytes)
        said.append((ridge(chip), each.latency_s, each.bound))
    (at, seconds, bound), (base_at, base_s, base_bound) = said
    return (
        "Where it fails by physics: absorbed latent attention in bf16 with 128 local heads "
        f"({LATENT}, {LATENT_PLAN}) needs {needed:.0f} FLOP for every byte of "
        f"cache. The Decode chip's ridge is {at:.0f} FLOP/B, the "
        f"H100's {base_at:.0f}: it is bound by {bound} on the one and by {base_bound} on the "
        f"other, and at contexts of {LATENT_STEP.context:,} tokens takes "
        f"{seconds / base_s:.2f} times as long on the Decode chip, whose memory is as fast."
    )


def ridge(chip: str) -> float:
    """FLOP per byte at which a chip's fp16 products turn from memory to compute."""
    loaded = Chip.load(chip)
    return loaded.tensor_flops("fp16") / loaded.memory.bandwidth
