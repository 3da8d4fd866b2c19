"""Systems of measured files as chips of the library, and the block that belongs to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.arch_configs import names
from chipsim.errors import UnknownNameError
from chipsim.execution import Execution

if TYPE_CHECKING:
    from chipsim.chip import Chip

GRAPH = "-graph"
"""End of the names of blocks fitted to kernels that a CUDA graph replays."""

DONORS = {"h100-sxm": "a100-sxm", "h200-sxm": "h100-sxm", "b200-sxm": "h200-sxm"}
"""Whose factors a chip takes over in a transfer: the nearest that was built before it."""


def chip_name(system: str) -> str:
    """Name in the library of a system as files write it (``h100_sxm``)."""
    return system.strip().lower().replace("_", "-")


def block_name(chip: str) -> str:
    """Name of the block of a chip's graph kernels: ``h100-graph``."""
    return chip.removesuffix("-sxm") + GRAPH


def own_block(chip: Chip) -> str:
    """The block that a chip is judged with: its graph kernels', else its own."""
    name = block_name(chip.name)
    return name if name in names("executions") else chip.execution


def donor_block(chip: str) -> str:
    """The block of the chip that came before.

    Raises
    ------
    UnknownNameError
        Nothing came before it.
    """
    if chip not in DONORS:
        raise UnknownNameError("chip with a predecessor", chip, DONORS)
    return block_name(DONORS[chip])


def transferred(chip: Chip) -> Execution:
    """Every factor of the chip that came before; kernels, which are switches, of its own.

    Tiles wait for their first keys only where both chips' do: factors fitted to kernels that
    prefetch know no such wait.

    Raises
    ------
    UnknownNameError
        Nothing came before it.
    """
    own = Execution.load(own_block(chip))
    donor = Execution.load(donor_block(chip.name))
    prefetch = own.kernels.fused.prefetch or donor.kernels.fused.prefetch
    fused = own.kernels.fused.model_copy(update={"prefetch": prefetch})
    kernels = own.kernels.model_copy(update={"fused": fused})
    return donor.model_copy(update={"kernels": kernels})
