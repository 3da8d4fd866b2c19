"""Units at the boundary: text as people write it in, plain SI floats out.

Inside chipsim every number is SI: seconds, bytes, bytes/s, FLOP, FLOP/s, hertz, watts,
joules; area is mm2 and cost US dollars. ``kB`` is 1e3 bytes and ``KiB`` is 2**10.
"""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

if TYPE_CHECKING:
    import pint

DIMENSIONS: dict[str, tuple[str, str]] = {
    # kind: (SI unit, an example to print)
    "bandwidth": ("byte/second", "3.35 TB/s"),
    "capacity": ("byte", "80 GB"),
    "frequency": ("hertz", "1.83 GHz"),
    "time": ("second", "20 us"),
    "power": ("watt", "700 W"),
    "bytes_per_cycle": ("byte/cycle", "5120 B/cycle"),
    "area": ("mm**2", "814 mm^2"),
    "length": ("mm", "33 mm"),
    "money": ("USD", "20000 USD"),
    "price_per_hour": ("USD/hour", "2.5 USD/hour"),
    "price_per_byte": ("USD/byte", "9 USD/GiB"),
    "price_per_area": ("USD/mm**2", "0.3 USD/mm^2"),
    "price_per_energy": ("USD/joule", "0.08 USD/kWh"),
    "defects": ("defect/mm**2", "0.1 defect/cm^2"),
    "transistor_density": ("transistor/mm**2", "96.3 MTr/mm^2"),
    "transistors": ("transistor", "552.7 MTr"),
    "power_density": ("watt/mm**2", "0.59 W/mm^2"),
    "energy_per_byte": ("joule/byte", "4.5 pJ/bit"),
    "energy": ("joule", "0.34 pJ"),
    "wire_energy": ("joule/byte/mm", "0.08 pJ/bit/mm"),
}


_DEFINITIONS = """
pico- = 1e-12 = p-
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ-
milli- = 1e-3 = m-
centi- = 1e-2 = c-
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
second = [time] = s = sec
byte = [information] = B
bit = byte / 8
hertz = 1 / second = Hz
meter = [length] = m
watt = [power] = W
joule = watt * second = J
watt_hour = watt * hour = Wh
minute = 60 * second = min
hour = 3600 * second = h
day = 24 * hour
cycle = [clock_cycle] = clk
transistor = [transistors] = Tr
defect = [defects]
dollar = [money] = USD
"""
"""Only what a chip is described with: in pint's own list a bit is dimensionless, which
would read ``"5"`` as a capacity, and the short list loads 50 times faster."""


@functools.cache
def _registry() -> pint.UnitRegistry[Any]:
    import pint

    registry: pint.UnitRegistry[Any] = pint.UnitRegistry(None)
    registry.load_definitions(_DEFINITIONS.strip().splitlines())
    return registry


_QUANTITY = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*[a-zµ]+(\s*[\^*]{1,2}\s*\d)?(\s*/\s*[a-z]+(\s*[\^*]{1,2}\s*\d)?){0,3}\s*",
    re.IGNORECASE | re.ASCII,
)
"""A number and a unit, perhaps with a power or over another unit: ``814 mm^2``, ``5 GB/s``."""


@functools.lru_cache(maxsize=4096)
def with_unit(kind: str, more: str = "") -> str:
    """What a quantity of a kind may be, for messages.

    Examples
    --------
    >>> with_unit("area")
    "an area with its unit, e.g. '814 mm^2'"
    """
    article = "an" if kind[0] in "aeiou" else "a"
    return (
        f"{article} {kind.replace('_', ' ')}{more} with its unit, e.g. {DIMENSIONS[kind][1]!r}"
    )


@functools.lru_cache(maxsize=4096)
def parse(text: str, kind: str) -> float:
    """Read a quantity such as ``"3.35 TB/s"`` into SI.

    Parameters
    ----------
    text : str
        Number and unit.
    kind : str
        A key of `DIMENSIONS`, e.g. ``"bandwidth"``.

    Returns
    -------
    float
        The value in the SI unit of that kind.

    Raises
    ------
    ValueError
        When the text is not a number with a unit of that kind, or not finite.
    """
    import pint

    unit, _ = DIMENSIONS[kind]
    wanted = with_unit(kind)
    if not _QUANTITY.fullmatch(text):  # pint would evaluate any expression, however long
        raise ValueError(wanted)
    try:
        quantity: Any = _registry().Quantity(text)
        value = float(quantity.to(unit).magnitude)
    except (
        pint.errors.PintError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        SyntaxError,
        OverflowError,
        ArithmeticError,
    ):
        raise ValueError(wanted) from None
    if not math.isfinite(value):
        raise ValueError(wanted)
    return value


def quantity(kind: str) -> BeforeValidator:
    """Pydantic validator: text with a unit becomes an SI float; floats pass in code only."""

    def read(value: object, info: Any) -> object:
        if isinstance(value, str):
            return parse(value, kind)
        from_file = bool(info.context and info.context.get("file"))
        if from_file:
            raise ValueError(with_unit(kind))
        return value

    return BeforeValidator(read)


Bandwidth = Annotated[float, quantity("bandwidth")]
"""Bytes per second."""
Capacity = Annotated[float, quantity("capacity")]
"""Bytes."""
Frequency = Annotated[float, quantity("frequency")]
"""Hertz."""
Seconds = Annotated[float, quantity("time")]
"""Seconds."""
Watts = Annotated[float, quantity("power")]
"""Watts."""
BytesPerCycle = Annotated[float, quantity("bytes_per_cycle")]
"""Bytes per clock cycle."""
SquareMillimetres = Annotated[float, quantity("area")]
"""mm2."""
Millimetres = Annotated[float, quantity("length")]
"""mm."""
Dollars = Annotated[float, quantity("money")]
"""US dollars."""
Defects = Annotated[float, quantity("defects")]
"""Defects per mm2."""
TransistorDensity = Annotated[float, quantity("transistor_density")]
"""Transistors per mm2."""
Transistors = Annotated[float, quantity("transistors")]
"""A number of transistors."""
PowerDensity = Annotated[float, quantity("power_density")]
"""Watts per mm2."""
JoulesPerByte = Annotated[float, quantity("energy_per_byte")]
"""Joules per byte."""
Joules = Annotated[float, quantity("energy")]
"""Joules."""
WireEnergy = Annotated[float, quantity("wire_energy")]
"""Joules per byte and mm."""
EnergyPrice = Annotated[float, quantity("price_per_energy")]
"""US dollars per joule."""
