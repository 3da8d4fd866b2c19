"""Prices of one's own in place of a book's, as the command line takes them.

"memory.GDDR6X=3 USD/GiB" -> what it prices, and a range -> the book with it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from chipsim.arch_configs import names
from chipsim.cost.memory import technologies
from chipsim.cost.prices import ChipPrice, MemoryPrice, PriceBook, Wafer, book_of
from chipsim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from chipsim.spec import Spec

UNITS = {"memory": "USD/GiB", "wafers": "USD", "chips": "USD"}
"""What can be priced, and the unit of a bare number."""

NUMBER = r"\d+\.?\d*(?:[eE][+-]?\d+)?"

FORM = "memory.TECHNOLOGY, wafers.PROCESS or chips.CHIP = an amount, e.g. memory.GDDR6X=3"


def given_prices(prices: PriceBook | str, given: Iterable[str]) -> PriceBook:
    """A book with prices of one's own, of the book's basis; its name says so.

    Parameters
    ----------
    given : iterable of str
        ``memory.GDDR6X=3`` (US dollars per GiB), ``memory.HBM3=9 to 12 USD/GB``,
        ``wafers.4nm=18000``, ``chips.mi210=5000 USD``; names in any case.

    Raises
    ------
    ConfigError, UnknownNameError
        Another form, a technology or process that is not known, an amount in a wrong unit.

    Examples
    --------
    >>> from chipsim.cost.chip_cost import chip_cost
    >>> book = given_prices("analysts-2026", ["memory.hbm3=9 to 12"])
    >>> cost = chip_cost("h100-sxm", book)
    >>> cost.prices, [round(cost.memory.low), round(cost.memory.high)]
    ('analysts-2026 with memory.HBM3=9 to 12', [720, 960])
    """
    book, told = book_of(prices), []
    for text in given:
        what, equals, amount = (part.strip() for part in text.partition("="))
        kind, dot, name = what.partition(".")
        if not (equals and dot and name and amount):
            raise ConfigError("--price", "", text, FORM)
        if kind not in UNITS:
            raise UnknownNameError("kind of price", kind, UNITS)
        name = _name(book, kind, name)
        book = _with(book, kind, name, _amount(amount, UNITS[kind]))
        told.append(f"{kind}.{name}={amount}")
    if not told:
        return book
    return book.model_copy(update={"name": f"{book.name} with {', '.join(told)}"})


def _name(book: PriceBook, kind: str, text: str) -> str:
    """A name as the book or the library writes it, in any case and with or without blanks."""
    known = {
        "memory": technologies(),
        "wafers": [name.replace("nm", " nm") for name in names("processes")],
        "chips": names("chips"),
    }[kind]
    entries: Mapping[str, Any] = getattr(book, kind)
    for name in (*entries, *known):
        if _plain(name) == _plain(text):
            return name
    if kind == "chips":
        return text  # a chip of one's own
    raise UnknownNameError(kind.removesuffix("s"), text, {*entries, *known})


def _plain(name: str) -> str:
    return re.sub(r"\s", "", name).lower()


def _amount(text: str, unit: str) -> Any:
    """One amount, or ``low to high``; with a unit of its own at the end, or none."""
    found = re.fullmatch(rf"({NUMBER})(?:\s+to\s+({NUMBER}))?\s*([a-zA-Z].*)?", text)
    low, high, given = found.groups() if found else (None, None, None)
    if low is None or (high is not None and float(high) < float(low)):
        raise ConfigError("--price", "", text, f"an amount: 3, 3 {unit}, 2.5 to 3 {unit}")
    amounts = [f"{each} {given or unit}" for each in (low, high) if each is not None]
    return amounts[0] if len(amounts) == 1 else {"low": amounts[0], "high": amounts[1]}


def _with(book: PriceBook, kind: str, name: str, amount: Any) -> PriceBook:
    kinds: dict[str, type[Spec]] = {
        "memory": MemoryPrice, "wafers": Wafer, "chips": ChipPrice,
    }  # fmt: skip
    entries = getattr(book, kind)
    known = entries.get(name)
    if kind == "wafers" and known is None and book.die_yield.model not in ("none", "fixed"):
        allowed = f"a process whose defects {book.name} states: {', '.join(entries) or 'none'}"
        raise ConfigError("--price", kind, name, allowed)
    kept = {} if known is None else {field: getattr(known, field) for field in _fields(known)}
    kept |= {"price": amount, "source": "given"}
    if kind == "memory":
        kept["basis"] = None
    made = kinds[kind].build(f"--price {kind}.{name}", **kept)
    return book.model_copy(update={kind: {**entries, name: made}})


def _fields(spec: Spec) -> list[str]:
    return list(type(spec).model_fields)
