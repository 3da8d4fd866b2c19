"""Price books: what wafers, memory, packages and whole chips cost, with source and date.

Every price has a basis. `manufacturing`: what the maker of the chip pays; `street`: what a
buyer pays; `rental`: per hour. Prices of two bases do not add up to anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from chipsim.arch_configs import load
from chipsim.cost.ranges import AreaPrice, BytePrice, HourlyPrice, Money, Range
from chipsim.errors import ConfigError, UnknownNameError
from chipsim.spec import Spec
from chipsim.units import Defects, Millimetres

Entry = TypeVar("Entry")


class UnpricedError(UnknownNameError):
    """A book has no price of a thing; the message says how to give one."""

    def __init__(self, kind: str, name: str, book: str, known: Iterable[str]) -> None:
        super().__init__(f"{kind} in price book {book}", name, known)
        self.args = (
            f"{self.args[0]}; or a price of your own: --price {kind}.{name}=AMOUNT, or a book",
        )


Basis = Literal["manufacturing", "street", "rental"]
YieldModel = Literal["none", "fixed", "poisson", "murphy", "seeds", "negative-binomial"]


class GrossDies(Spec):
    """How many dies are counted on a wafer."""

    formula: Literal["edge-loss", "area"] = "edge-loss"
    """pi r2 / A - pi d / sqrt(2 A), or the first term alone."""
    whole: bool = False
    """Round down to whole dies."""
    diameter: Annotated[Millimetres, Field(gt=0)] = 300.0


class Yield(Spec):
    """Which dies work."""

    model: YieldModel = "none"
    alpha: Annotated[float, Field(gt=0, le=1e6)] = 3.0
    """Clustering of defects, of the negative binomial model only."""
    value: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of the model ``fixed``: a yield that is known, whatever the area."""
    harvest: bool = True
    """Count a die as good that has its chip's cores among more physical ones."""


class Wafer(Spec):
    """A processed wafer of one node."""

    price: Money
    defects: Annotated[Defects, Field(ge=0)] = 0.0
    """Per mm2; only a yield model reads it."""
    source: str = ""

    @model_validator(mode="after")
    def _paid(self) -> Self:
        if self.price.low <= 0.0:
            raise ValueError("a price above 0 USD")
        return self


class MemoryPrice(Spec):
    """One memory technology, by capacity."""

    price: BytePrice
    basis: Basis | None = None
    """Null: the book's."""
    source: str = ""


class PackageItem(Spec):
    """One line of packaging, test and assembly."""

    name: str
    price: Money = Range.of(0.0)
    """Per chip."""
    per_die_area: AreaPrice = Range.of(0.0)
    """Per mm2 of all dies."""
    per_memory_package: Money = Range.of(0.0)
    """Per stack or device of memory."""
    memory: tuple[str, ...] = ()
    """Only of chips with these technologies; none: of all."""
    basis: Basis | None = None
    source: str = ""


class ChipPrice(Spec):
    """A whole chip, bought or rented."""

    price: Money | None = None
    hourly: HourlyPrice | None = None
    """Rental, per chip; its basis is always ``rental``."""
    source: str = ""


class DesignPrice(Spec):
    """What the first die of a design costs before any is sold (NRE)."""

    masks: Money
    design: Money = Range.of(0.0)
    source: str = ""

    @property
    def total(self) -> Range:
        """Masks and design, US dollars."""
        return self.masks + self.design


class PriceBook(Spec):
    """Prices of one source, date and basis."""

    name: str
    description: str = ""
    date: str
    """Of the prices: ``2025-10``."""
    source: str
    basis: Basis
    """Of every price that does not name its own."""
    gross_dies: GrossDies = GrossDies()
    die_yield: Annotated[Yield, Field(alias="yield")] = Yield()
    wafers: dict[str, Wafer] = Field(default_factory=dict)
    """By process, e.g. ``4 nm``."""
    memory: dict[str, MemoryPrice] = Field(default_factory=dict)
    """By memory technology: names of ``arch_configs/memories``."""
    packaging: tuple[PackageItem, ...] = ()
    chips: dict[str, ChipPrice] = Field(default_factory=dict)
    """By chip; where one is listed with a price, its parts are not added up."""
    design: dict[str, DesignPrice] = Field(default_factory=dict)
    """By process."""
    assembly_yield: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Chips that survive packaging; a lost one takes its dies and memory along."""
    assembly_memory: tuple[str, ...] = ()
    """Technologies that are packaged with the dies; memory on a board is not lost with them,
    and neither is anything else. None: all."""

    @model_validator(mode="after")
    def _has_prices(self) -> Self:
        if not (self.wafers or self.chips):
            raise ValueError("prices of wafers or of chips")
        bought = [
            *(f"wafers.{name}" for name in self.wafers if self.basis == "rental"),
            *(f"chips.{n}.price" for n, chip in self.chips.items() if self._rents(chip)),
            *(f"memory.{n}" for n, entry in self.memory.items() if self._rents(entry)),
            *(f"packaging.{item.name}" for item in self.packaging if self._rents(item)),
        ]
        if bought:
            raise ValueError(f"a basis of things that are bought, for {bought[0]}; not rental")
        return self

    def _rents(self, entry: MemoryPrice | PackageItem | ChipPrice) -> bool:
        """Whether something that is bought has the basis ``rental``."""
        if isinstance(entry, ChipPrice):
            return entry.price is not None and self.basis == "rental"
        return (entry.basis or self.basis) == "rental"

    @classmethod
    def load(cls, name: str) -> PriceBook:
        """Read a book by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("prices", name)
        return cls.read(data, path)

    def wafer(self, process: str) -> Wafer:
        """The wafer of a process (`UnknownNameError`)."""
        return _entry(self.wafers, process, f"process in price book {self.name}")

    def memory_price(self, technology: str) -> MemoryPrice:
        """The price of a memory technology (`UnpricedError`)."""
        if technology not in self.memory:
            raise UnpricedError("memory", technology, self.name, self.memory)
        return self.memory[technology]

    def chip_price(self, name: str) -> ChipPrice:
        """The price of a whole chip (`UnknownNameError`)."""
        return _entry(self.chips, name, f"chip in price book {self.name}")

    def design_price(self, process: str) -> DesignPrice:
        """Masks and design of a process (`UnknownNameError`)."""
        return _entry(self.design, process, f"design cost of a process in {self.name}")

    def with_memory_price(self, technology: str, price: Range | float) -> PriceBook:
        """The book with another memory price, US dollars per byte."""
        known = self.memory_price(technology)
        paid = price if isinstance(price, Range) else Range.of(price)
        changed = known.model_copy(update={"price": paid})
        return self.model_copy(update={"memory": {**self.memory, technology: changed}})


def _entry(prices: dict[str, Entry], name: str, kind: str) -> Entry:
    if name not in prices:
        raise UnknownNameError(kind, name, prices)
    return prices[name]


def one_basis(where: str, bases: set[Basis], mixed: bool = False) -> str:
    """The basis of a sum of prices.

    Parameters
    ----------
    where : str
        What is summed, for the message.
    bases : set of str
        Those of its parts.
    mixed : bool
        Add them up although they differ; the result then says so.

    Returns
    -------
    str
        The basis, or ``"mixed: manufacturing, street"``.

    Raises
    ------
    ConfigError
        The bases differ and `mixed` was not asked for.
    """
    names = ", ".join(sorted(bases))
    if len(bases) <= 1:
        return names
    if not mixed:
        raise ConfigError(where, "basis", names, "one basis; or --force (mixed=True)")
    return f"mixed: {names}"


def book_of(prices: PriceBook | str) -> PriceBook:
    """A book, or the one of a name (`ConfigError`, `UnknownNameError`)."""
    return PriceBook.load(prices) if isinstance(prices, str) else prices
