"""Products of many experts at once: each with its own weights and its own rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipsim.ops.base import Kind, Operator
from chipsim.ops.checks import positive
from chipsim.ops.formats import get_format
from chipsim.ops.loads import ExpertGroup, RankLoad


@dataclass(frozen=True, slots=True)
class GroupedGemm(Operator):
    """C (rows x n) = A (rows x k) B (k x n) of every expert that gets rows.

    Attributes
    ----------
    loads : tuple of RankLoad
        What the experts of a chip get; of several, one chip each, the slowest decides.
    n, k : int
        Columns and depth of one expert's weights on a chip.
    accumulate : str
        Format of the sums.
    """

    name: str
    loads: tuple[RankLoad, ...]
    n: int
    k: int
    a_format: str = "fp16"
    b_format: str = "fp16"
    c_format: str = "fp16"
    accumulate: str = "fp32"
    _sizes: ClassVar[tuple[str, ...]] = ("n", "k")
    _formats: ClassVar[tuple[str, ...]] = ("a_format", "b_format", "c_format", "accumulate")

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        if not self.loads or not all(self.loads):
            self._refuse("loads", self.loads, "at least one chip with at least one expert")
        for experts, rows in (group for load in self.loads for group in load):
            positive(self._label(), "experts", experts)
            positive(self._label(), "rows", rows)

    @classmethod
    def even(
        cls, name: str, experts: float, rows: float, n: int, k: int, *formats: str
    ) -> GroupedGemm:
        """One chip whose ``experts`` get ``rows`` rows each."""
        return cls(name, ((ExpertGroup(experts, rows),),), n, k, *formats)

    @property
    def kind(self) -> Kind:
        """``"gemm"``: one kernel with weights."""
        return "gemm"

    @property
    def rows(self) -> float:
        """Expected rows of the chip that has most."""
        return max(sum(group.experts * group.rows for group in load) for load in self.loads)

    @property
    def experts(self) -> float:
        """Expected experts whose weights are read, on the chip that reads most."""
        return max(sum(group.experts for group in load) for load in self.loads)

    @property
    def flops(self) -> float:
        """2 rows n k of the chip with most rows."""
        return 2.0 * self.rows * self.n * self.k

    @property
    def weight_bytes(self) -> float:
        """Weights of the experts that get rows, on the chip that reads most."""
        return self.experts * self.n * self.k * get_format(self.b_format).bytes

    @property
    def bytes(self) -> float:
        """Rows and touched weights once in, results once out."""
        return max(self._bytes(load) for load in self.loads)

    def _bytes(self, load: RankLoad) -> float:
        rows = sum(group.experts * group.rows for group in load)
        experts = sum(group.experts for group in load)
        a = rows * self.k * get_format(self.a_format).bytes
        c = rows * self.n * get_format(self.c_format).bytes
        return a + experts * self.n * self.k * get_format(self.b_format).bytes + c
