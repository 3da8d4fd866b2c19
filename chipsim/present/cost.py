"""What a chip costs and draws: as a record, as tables, and as a line beside a cut."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from chipsim.present.axes import AXES
from chipsim.present.headline import told_point
from chipsim.present.quantities import digits, percent, plain
from chipsim.present.tables import footer_line, heading, table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from chipsim.cost.chip_cost import Cost
    from chipsim.cost.design import BreakEven
    from chipsim.cost.energy import EnergyModel
    from chipsim.cost.ranges import Range
    from chipsim.cost.system import SystemCost
    from chipsim.explore.compare import Comparison
    from chipsim.explore.cuts import CutsResult
    from chipsim.explore.money import Money
    from chipsim.explore.plans import PlanSearch


def cost_record(cost: Cost, model: EnergyModel) -> dict[str, Any]:
    """A chip's cost, power and energies as one object."""
    power = model.power
    return cost.record() | {
        "tdp_w": power.tdp_w,
        "stated_tdp_w": power.stated_w,
        "modelled_tdp_w": power.modelled_tdp_w,
        "tdp_parts": dict(power.parts),
        "modelled_tdp_parts": dict(power.modelled),
        "die_w_per_mm2": power.die_w_per_mm2,
        "idle_w": power.idle_w,
        "energy": model.record(),
        "energies": model.energies.name,
    }


def cost_tables(cost: Cost, model: EnergyModel) -> list[Table | Text]:
    """A chip's cost, power and energies to read."""
    parts: list[Table | Text] = [
        heading(f"{cost.chip} costs {dollars(cost.total)} and draws {_tdp(model)}"),
        table(("cost", "", ""), list(_cost_lines(cost))),
        table(("power", "W"), list(_power_lines(model))),
        table(("energy", "pJ"), [(_level(k), digits(v)) for k, v in model.record().items()]),
    ]
    if cost.blocks:
        areas = sorted(cost.blocks.items(), key=lambda block: -block[1])
        rows = [(name.replace("_", " "), digits(mm2)) for name, mm2 in areas]
        parts.insert(2, table(("block, as modelled", "mm²"), rows))
    told = [
        f"prices {cost.prices} of {cost.date}, {cost.basis} · energies {model.energies.name}"
    ]
    told += [cost.counterfactual] if cost.counterfactual else []
    return parts + [footer_line(line) for line in (*told, *cost.notes)]


def dollars(amount: Range) -> str:
    """A price, with its range where it has one.

    >>> from chipsim.cost.ranges import Range
    >>> dollars(Range.of(1035.2)), dollars(Range(low=795, mid=1035, high=1275))
    ('$1035', '$1035 ($795 to $1275)')
    """
    mid = _usd(amount.mid)
    return mid if amount.known else f"{mid} ({_usd(amount.low)} to {_usd(amount.high)})"


def _usd(amount: float) -> str:
    return f"${amount:.0f}" if amount >= 100 else f"${digits(amount)}"


def _tdp(model: EnergyModel) -> str:
    power = model.power
    if power.stated_w is None:
        return f"{power.tdp_w:.0f} W, as modelled"
    return f"{plain(power.stated_w)} W (modelled: {power.modelled_tdp_w:.0f} W)"


def _cost_lines(cost: Cost) -> Iterator[tuple[str, str, str]]:
    for die in cost.dies:
        several = f"{die.count} × " if die.count > 1 else ""
        about = f"{several}{digits(die.area_mm2, 4)} mm² in {die.process}, "
        about += f"{digits(die.gross_dies)} a wafer, yield {percent(die.yield_)}"
        yield die.name, dollars(die.cost * die.count), about
    if not cost.dies and cost.die_area_mm2:
        stated = "" if cost.stated_area_mm2 else ", as modelled"
        yield "dies", "", f"{digits(cost.die_area_mm2, 4)} mm²{stated}"
    if cost.dies:
        yield "memory", dollars(cost.memory), ""
    for name, part in cost.packaging_items.items():
        yield name, dollars(part), "packaging"
    if cost.design.high:
        yield "design", dollars(cost.design), "its share of one chip"
    yield "total", dollars(cost.total), ""
    if cost.modelled is not None:
        area = f"{digits(cost.modelled_area_mm2 or 0.0, 4)} mm²"
        yield "die as modelled", dollars(cost.modelled), area


def _power_lines(model: EnergyModel) -> Iterator[tuple[str, str]]:
    for name, watts in model.power.parts.items():
        yield name, digits(watts)
    yield "TDP", digits(model.power.tdp_w)
    if model.power.stated_w is not None:
        yield "TDP as modelled", digits(model.power.modelled_tdp_w)
    yield "die, per mm²", digits(model.power.die_w_per_mm2)
    yield "idle", digits(model.power.idle_w)


def _level(key: str) -> str:
    """``fp16_pj_per_flop`` as people say it."""
    name, _, unit = key.partition("_pj_per_")
    return f"{name}, of a {'FLOP' if unit == 'flop' else 'byte'}"


def money_text(money: Money) -> str:
    """Cost, TDP and energy of one chip in a few words.

    >>> from chipsim.explore.money import Money
    >>> money_text(Money(1035.1, 700.0, 11.52))
    '$1035, TDP 700 W, 11.5 J a chip'
    """
    parts = []
    if money.cost_usd is not None:
        parts.append(_usd(money.cost_usd))
    if money.tdp_w is not None:
        parts.append(f"TDP {money.tdp_w:.0f} W")
    if money.energy_j is not None:
        parts.append(f"{digits(money.energy_j)} J a chip")
    if money.tokens_per_s_per_usd is not None:
        parts.append(f"{digits(money.tokens_per_s_per_usd)} tokens/s per $")
    if money.energy_j_per_token is not None:
        parts.append(f"{digits(money.energy_j_per_token)} J a token")
    if money.counterfactual:
        parts.append("counterfactual memory")
    return ", ".join(parts)


def money_line(run: CutsResult) -> str:
    """What the uncut chip costs and draws, and the point that the headline tells of."""
    book = run.setup.prices.name if run.setup.prices else "no price book"
    lines = [f"uncut: {money_text(run.money)}"] if money_text(run.money) else []
    point = told_point(run)
    if point is not None and money_text(point.money):
        place = " and ".join(AXES[s.resource].text(s.value) for s in point.steps)
        lines.append(f"{place}: {money_text(point.money)}")
    reasons = [run.money.unpriced, point.money.unpriced if point is not None else ""]
    lines += dict.fromkeys(reason for reason in reasons if reason)
    return f"{' · '.join(lines)} · prices {book}"


def compare_lines(found: Comparison) -> list[str]:
    """What each of two runs costs and draws; nothing beside another tool's run."""
    if not found.money:
        return []
    names = (found.name_a, found.name_b)
    told = [
        f"{name}: {money_text(money) or 'no price and no power'}"
        for name, money in zip(names, found.money, strict=True)
    ]
    told += dict.fromkeys(money.unpriced for money in found.money if money.unpriced)
    return [*told, f"prices {compare_book(found)}"]


def compare_book(found: Comparison) -> str | None:
    """The price book of two runs."""
    book = found.setups[0].prices if found.setups else None
    return book.name if book else None


def compare_money(found: Comparison) -> dict[str, Any]:
    """Dollars, watts and joules of two runs, and what b has of them for each of a's."""
    if not found.money:
        return {}
    a, b = (money.record() for money in found.money)
    both: dict[str, Any] = {}
    for name in a:
        head, dot, unit = _unit_of(name)
        both |= {f"{head}_a{dot}{unit}": a[name], f"{head}_b{dot}{unit}": b[name]}
    return {"prices": compare_book(found), **both}


def _unit_of(name: str) -> tuple[str, str, str]:
    """``cost_usd`` as ``cost``, ``_``, ``usd``: where the name of a side goes."""
    for unit in ("usd", "w", "j"):
        if name.endswith(f"_{unit}") and "_per_" not in name:
            return name.removesuffix(f"_{unit}"), "_", unit
    return name, "", ""


def plans_money(found: PlanSearch) -> str:
    """What a chip costs and draws under the first plan, and the price book."""
    paid = found.pricing.money(found.plans[0].estimate, found.chips)
    told = " · ".join(text for text in (money_text(paid), paid.unpriced) if text)
    return f"first plan: {told} · prices {found.prices.name}"


TOKENS = {"prefill": "input", "decode": "output"}
"""Tokens that a phase makes."""


def system_record(
    chip: str, cost: SystemCost, tokens: Range | None, phase: str, per_usd: float | None
) -> dict[str, Any]:
    """Machines as one object: the price of a million tokens of a phase, requests per dollar."""
    ends = {"capital": cost.capital, "per_hour": cost.per_hour}
    found = {"chip": chip} | cost.record()
    for name, amount in ends.items():
        unit = "usd" if name == "capital" else "usd_per_hour"
        key = f"{name}_{unit}" if name == "capital" else unit
        found |= {f"{key}_low": amount.low, f"{key}_high": amount.high}
    if tokens is not None:
        key = f"usd_per_million_{TOKENS[phase]}_tokens"
        found |= {key: tokens.mid, f"{key}_low": tokens.low, f"{key}_high": tokens.high}
    return found | ({} if per_usd is None else {"requests_per_usd": per_usd})


def system_tables(chip: str, cost: SystemCost, record: dict[str, Any]) -> list[Table | Text]:
    """Machines to read."""
    rows = [(name, dollars(part)) for name, part in cost.parts.items()]
    rows += [("capital", dollars(cost.capital))] if cost.machines else []
    spread = "capital, an hour" if cost.machines else "rent, an hour"
    rows.append((spread, dollars(cost.capital_per_hour)))
    if cost.machines:
        rows.append(("electricity, an hour", dollars(cost.energy_per_hour)))
    rows.append(("an hour", dollars(cost.per_hour)))
    for kind in TOKENS.values():
        key = f"usd_per_million_{kind}_tokens"
        if key in record:
            ends = (record[f"{key}_low"], record[key], record[f"{key}_high"])
            text = " to ".join(dict.fromkeys(_usd(each) for each in ends))
            rows.append((f"a million {kind} tokens", text))
    if "requests_per_usd" in record:
        rows.append(("requests within objective, a $", digits(record["requests_per_usd"])))
    what = f"{cost.chips} × {chip}"
    drawn = f" and draws {cost.power_w / 1e3:.3g} kW" if cost.machines else ", rented"
    told = f"prices {record['prices']}, {cost.basis}"
    told += f" · host {record['host']}" if record["host"] else ""
    return [
        heading(f"{what} costs {dollars(cost.per_hour)} an hour{drawn}"),
        table(("system", "USD"), rows),
        footer_line(told),
    ]


def break_even_record(second: str, first: str, found: BreakEven) -> dict[str, Any]:
    """Chips from which a second design pays; null where it never does."""
    ends = {"low": found.low, "mid": found.mid, "high": found.high}
    units = {f"{k}_chips": v if math.isfinite(v) else None for k, v in ends.items()}
    return {"chip": second, "instead_of": first, **units, "saving_usd": found.saving_usd}


def break_even_line(record: dict[str, Any]) -> str:
    """When a second design pays, in a sentence."""
    low, mid, high = (record[f"{end}_chips"] for end in ("low", "mid", "high"))
    instead = f"{record['chip']} instead of {record['instead_of']}"
    if mid is None:
        return f"{instead} never pays for its design: it saves {record['saving_usd']:.0f} USD"
    most = "never" if high is None else f"{high:,.0f}"
    pays = f"pays for its design from {mid:,.0f} chips on ({low:,.0f} to {most})"
    return f"{instead} {pays}, at ${record['saving_usd']:.0f} saved on each"
