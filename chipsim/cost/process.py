"""Process nodes: how much logic and SRAM fit a square millimetre."""

from __future__ import annotations

import functools
from typing import Annotated

from pydantic import Field

from chipsim.arch_configs import load, names
from chipsim.errors import UnknownNameError
from chipsim.spec import Spec
from chipsim.units import SquareMillimetres, TransistorDensity


class Process(Spec):
    """One node, as the area model sees it."""

    name: str
    """As chips write it: ``4 nm``."""
    source: str
    logic: Annotated[TransistorDensity, Field(gt=0)]
    """Transistors per mm2 of logic as placed."""
    sram: Annotated[SquareMillimetres, Field(gt=0)]
    """mm2 of one bit, before the area efficiency of a cache of a size."""

    @classmethod
    def load(cls, name: str, where: str = "") -> Process:
        """Read a node by the name that chips write (`UnknownNameError`, of a place)."""
        file = name.replace(" ", "")
        if file not in names("processes"):
            known = [known.replace("nm", " nm") for known in names("processes")]
            raise UnknownNameError("process", name, known, where)
        return _load(file)

    def mm2(self, transistors: float) -> float:
        """Area of so much logic, mm2."""
        return transistors / self.logic


@functools.lru_cache(maxsize=32)
def _load(file: str) -> Process:
    data, path = load("processes", file)
    return Process.read(data, path)
