"""Performance of language models on accelerators, from one operator to a cluster.

chip + model → operator graph of a phase → best mapping of each operator → latency and
bound → cuts, comparisons and validation → figures.

Names are imported when first used, so ``import chipsim`` itself loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cluster.scenario import Scenario
    from chipsim.cluster.simulate import Cluster, simulate
    from chipsim.cluster.workload import Workload
    from chipsim.cluster.workload_spec import load_workload
    from chipsim.cost import chip_cost
    from chipsim.errors import ChipsimError
    from chipsim.execution import Execution
    from chipsim.explore.compare import compare
    from chipsim.explore.cuts import cuts
    from chipsim.explore.plans import plans
    from chipsim.importers import import_chip, import_model
    from chipsim.memory import memory_plan
    from chipsim.ops.graph import Phase
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.precision import Precision
    from chipsim.performance import PerformanceModel
    from chipsim.phases import estimate
    from chipsim.validation import validate

    __version__: str

__all__ = [
    "Chip",
    "ChipsimError",
    "Cluster",
    "Execution",
    "ModelSpec",
    "Parallelism",
    "PerformanceModel",
    "Phase",
    "Precision",
    "Scenario",
    "Workload",
    "__version__",
    "chip_cost",
    "compare",
    "cuts",
    "estimate",
    "import_chip",
    "import_model",
    "load_workload",
    "memory_plan",
    "plans",
    "simulate",
    "validate",
]

_HOMES = {
    "Chip": "chipsim.chip",
    "ChipsimError": "chipsim.errors",
    "Cluster": "chipsim.cluster.simulate",
    "Execution": "chipsim.execution",
    "ModelSpec": "chipsim.ops.model",
    "Parallelism": "chipsim.ops.parallelism",
    "PerformanceModel": "chipsim.performance",
    "Phase": "chipsim.ops.graph",
    "Precision": "chipsim.ops.precision",
    "Scenario": "chipsim.cluster.scenario",
    "Workload": "chipsim.cluster.workload",
    "chip_cost": "chipsim.cost",
    "compare": "chipsim.explore.compare",
    "cuts": "chipsim.explore.cuts",
    "estimate": "chipsim.phases",
    "import_chip": "chipsim.importers",
    "import_model": "chipsim.importers",
    "load_workload": "chipsim.cluster.workload_spec",
    "memory_plan": "chipsim.memory",
    "plans": "chipsim.explore.plans",
    "simulate": "chipsim.cluster.simulate",
    "validate": "chipsim.validation",
}
"""Module that each public name is read from."""


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import a public name on first use (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            value: object = version("chipsim")
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'chipsim' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Names that completion offers."""
    return sorted(__all__)
