"""What a chip costs and draws: area, dies, memory, packages, prices."""

from chipsim.cost.chip_cost import Cost, chip_cost
from chipsim.cost.prices import PriceBook
from chipsim.cost.ranges import Range

__all__ = ["Cost", "PriceBook", "Range", "chip_cost"]
