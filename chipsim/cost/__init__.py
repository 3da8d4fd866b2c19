"""What a chip costs and draws: area, dies, memory, packages, prices."""

from chipsim.cost.chip_cost import Cost, chip_cost
from chipsim.cost.design import BreakEven, break_even
from chipsim.cost.instance import InstanceCost, instance_cost
from chipsim.cost.prices import PriceBook
from chipsim.cost.ranges import Range

__all__ = [
    "BreakEven",
    "Cost",
    "InstanceCost",
    "PriceBook",
    "Range",
    "break_even",
    "chip_cost",
    "instance_cost",
]
