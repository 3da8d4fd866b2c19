"""Numbers as people read them: three digits, a prefix, a unit."""

from __future__ import annotations

import math

PREFIXES = ("p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E")
_UNITY = PREFIXES.index("")
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def digits(value: float, count: int = 3) -> str:
    """A number with ``count`` significant digits, never in exponent form below 1e15.

    >>> digits(0.9996), digits(123456), digits(66.91)
    ('1.00', '123456', '66.9')
    """
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.{count - 1}e}")
    after = max(0, count - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{after}f}" if after <= 12 else f"{value:.{count}g}"


def plain(value: float) -> str:
    """A number as a person would type it.

    >>> plain(132.0), plain(1.83), plain(0.1 + 0.2)
    ('132', '1.83', '0.3')
    """
    return f"{value:.10g}"


def format_si(value: float, unit: str, count: int = 3) -> str:
    """A quantity with an SI prefix.

    >>> format_si(3.352e12, "B/s"), format_si(43.7e-3, "s"), format_si(9.894e14, "FLOP/s")
    ('3.35 TB/s', '43.7 ms', '989 TFLOP/s')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    rounded = abs(float(f"{value:.{count - 1}e}"))
    if not 1e-12 <= rounded < 1e21:
        return f"{value:.{count - 1}e} {unit}"
    step = math.floor(math.log10(rounded) / 3 + 1e-9)
    return f"{digits(value / 1000.0**step, count)} {PREFIXES[step + _UNITY]}{unit}"


def seconds(value: float) -> str:
    """A time.

    >>> seconds(0.2118), seconds(2.1e-5)
    ('212 ms', '21.0 µs')
    """
    return format_si(value, "s")


def binary(value: float, count: int = 3) -> str:
    """A capacity in binary units.

    >>> binary(80 * 2**30), binary(256 * 2**10)
    ('80 GiB', '256 KiB')
    """
    step = 0
    while abs(value) >= 1024 and step < len(BINARY) - 1:
        value, step = value / 1024, step + 1
    text = plain(value) if value == round(value) else digits(value, count)
    return f"{text} {BINARY[step]}"


def percent(fraction: float, count: int = 3) -> str:
    """A fraction in per cent.

    >>> percent(0.1234), percent(0.5966)
    ('12.3 %', '59.7 %')
    """
    return f"{digits(100.0 * fraction, count)} %"


def grouped(value: int) -> str:
    """A whole number with its thousands apart.

    >>> grouped(176247271424)
    '176,247,271,424'
    """
    return f"{value:,}"
