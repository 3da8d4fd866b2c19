"""The floor plan of a chip: its blocks by area, cores by what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cost.area import area_blocks, core_blocks
from chipsim.errors import ChipsimError
from chipsim.present.quantities import digits, percent
from chipsim.present.sketch import Sketch, sketch
from chipsim.present.theme import BLUE, GREEN, MUTED, ORANGE, PURPLE, SKY, VERMILION, YELLOW

if TYPE_CHECKING:
    from chipsim.chip import Chip

COLOURS = {
    "cores": "#DCE9F3",
    "array": BLUE,
    "vector": SKY,
    "registers": "#8FD3BF",
    "sram": GREEN,
    "control": "#A0A6AD",
    "l2": ORANGE,
    "crossbar": YELLOW,
    "memory_phy": VERMILION,
    "memory_controller": "#E8A27C",
    "link_phy": PURPLE,
    "link_controller": "#E3BDD3",
    "host": "#7B3F6B",
    "other": MUTED,
    "white_space": "#E6E8EB",
}
"""Blocks and their colours."""

NAMES = {
    "array": "systolic arrays",
    "vector": "vector units",
    "sram": "SRAM",
    "l2": "L2",
    "memory_phy": "memory PHY",
    "link_phy": "link PHY",
    "host": "host interface",
}


def block_name(block: str) -> str:
    """A block as people say it."""
    return NAMES.get(block, block.replace("_", " "))


def floor_figure(chip: Chip, base: Chip | None = None) -> Sketch:
    """Draw blocks as rectangles of their area.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one.

    Raises
    ------
    ChipsimError
        The chip has no floor plan.
    """
    blocks = {name: mm2 for name, mm2 in area_blocks(chip, base).items() if mm2 > 0.0}
    if not blocks:
        raise ChipsimError(f"{chip.name}: no floor plan, so no area by block")
    one, total = core_blocks(chip), sum(blocks.values())
    cores = blocks["cores"] / sum(one.values())
    leaves = [(name, "", mm2) for name, mm2 in blocks.items()]
    leaves += [(name, "cores", cores * mm2) for name, mm2 in one.items() if mm2 > 0.0]
    leaves.sort(key=lambda leaf: -leaf[2])
    stated = "" if chip.die_area is None else f", {digits(chip.die_area, 4)} mm² stated"
    return sketch(
        [
            {
                "type": "treemap",
                "ids": [name for name, _, _ in leaves],
                "labels": [block_name(name) for name, _, _ in leaves],
                "parents": [parent for _, parent, _ in leaves],
                "values": [mm2 for _, _, mm2 in leaves],
                "branchvalues": "total",
                "marker": {"colors": [COLOURS.get(name, MUTED) for name, _, _ in leaves]},
                "text": [f"{digits(mm2)} mm²" for _, _, mm2 in leaves],
                "textinfo": "label+text",
                "customdata": [percent(mm2 / total) for _, _, mm2 in leaves],
                "hovertemplate": "<b>%{label}</b><br>%{text}, %{customdata} of all dies"
                "<extra></extra>",
                "tiling": {"pad": 1},
                "pathbar": {"visible": False},
            }
        ],
        _headline(chip, blocks, total),
        f"{digits(total, 4)} mm² as modelled{stated} · {chip.process or 'no process'}",
        height=400,
        margin={"l": 0, "r": 0, "t": 8, "b": 8},
    )


def _headline(chip: Chip, blocks: dict[str, float], total: float) -> str:
    cores = blocks["cores"] / total
    rest = {name: mm2 for name, mm2 in blocks.items() if name not in ("cores", "white_space")}
    most = max(rest, key=lambda name: rest[name])
    told = f"{block_name(most)} {percent(rest[most] / total, 2)}"
    return f"{chip.name}: cores take {percent(cores, 2)} of the area, {told}"
