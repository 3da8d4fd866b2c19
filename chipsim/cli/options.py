"""Options that several commands share, with one wording each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cost.prices import PriceBook
    from chipsim.ops.loads import ExpertLoad
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.parts import PhaseName
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision

ChipName = Annotated[
    str, typer.Option("--chip", metavar="CHIP", help="A chip: its name or a YAML file.")
]
ModelName = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="A model: its name or a YAML file.")
]
ExecutionName = Annotated[
    str | None,
    typer.Option(
        "--execution", metavar="BLOCK", help="Execution block; the chip's own unless given."
    ),
]
Formats = Annotated[
    str,
    typer.Option(
        "--precision",
        "--dtype",
        metavar="FORMAT",
        help="bf16, or weights=fp8,activations=bf16,kv=fp8.",
    ),
]
MaybeFormats = Annotated[
    str | None,
    typer.Option(
        "--precision",
        "--dtype",
        metavar="FORMAT",
        help="bf16, or weights=nvfp4,kv=fp8,...; the model's own, or fp16, unless given.",
    ),
]
Tp = Annotated[
    int | None, typer.Option("--tp", metavar="N", help="Short for --plan tp=N.", min=1)
]
Plan = Annotated[
    str | None,
    typer.Option("--plan", metavar="tp=8,ep=8", help="Degrees tp, pp, ep, dp, cp, dcp."),
]
Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="LOAD",
        help="Tokens over experts: uniform, zipf=0.8, or a file of tokens per expert.",
    ),
]
Draft = Annotated[
    int, typer.Option("--draft", metavar="N", help="Drafted tokens that a decode step checks.")
]
LayersOnly = Annotated[
    bool, typer.Option("--layers-only", help="Leave embedding and LM head out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, SI units.")]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write; the ending says what.")
]
Prices = Annotated[
    str,
    typer.Option("--prices", metavar="BOOK", help="Price book: its name or a YAML file."),
]
Price = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="WHAT=AMOUNT",
        help="A price of your own in place of the book's: memory.GDDR6X=3 (USD/GiB), "
        "wafers.4nm=18000, chips.mi210='5000 to 6000 USD'; several are allowed.",
    ),
]
PowerCap = Annotated[
    str | None,
    typer.Option(
        "--power-cap", metavar="W|tdp", help="Most power of the chip: 450, 450 W, or its TDP."
    ),
]
PhaseKind = Annotated[
    str, typer.Option("--phase", metavar="prefill|decode", help="Phase of serving.")
]
Prompt = Annotated[
    int | None, typer.Option("--prompt", metavar="N", help="Prompt tokens (prefill).")
]
Context = Annotated[
    int | None,
    typer.Option("--context", metavar="N", help="Tokens attended to (decode)."),
]


def read_book(prices: str, given: list[str] | None) -> PriceBook:
    """The book of ``--prices`` with the amounts of ``--price``."""
    from chipsim.cost.given import given_prices

    return given_prices(prices, given or [])


def read_cap(text: str | None, chip: str) -> float | None:
    """The watts of ``--power-cap``; ``tdp`` is that of the chip."""
    if text is None or text.lower() != "tdp":
        return read_power(text)
    from chipsim.cost.power import power

    return power(chip).tdp_w


def read_power(text: str | None) -> float | None:
    """The watts of ``--power-cap``."""
    from chipsim.units import parse

    if text is None:
        return None
    try:
        watts = float(text) if text.replace(".", "", 1).isdecimal() else parse(text, "power")
    except ValueError as error:
        raise ConfigError("--power-cap", "", text, f"watts, or {error}") from None
    if not 0 < watts < 1e9:
        raise ConfigError("--power-cap", "", text, "a power above 0")
    return watts


def read_plan(tp: int | None, plan: str | None) -> Parallelism:
    """The plan of ``--tp`` or ``--plan``; one chip where neither is given."""
    from chipsim.ops.parallelism import Parallelism

    if plan is None:
        return Parallelism.build("--tp", tp=1 if tp is None else tp)
    if tp is not None:
        raise ConfigError("--tp", "", tp, "--tp or --plan, not both")
    return Parallelism.parse(plan)


def read_load(text: str | None) -> ExpertLoad | None:
    """The load of ``--load``: its words, or a file with a number of tokens per expert."""
    from pathlib import Path

    from chipsim.ops.loads import ExpertLoad

    if text is None:
        return None
    if not Path(text).is_file():
        if "=" in text or text == "uniform":
            return ExpertLoad.parse(text)
        raise ConfigError("--load", "", text, "uniform, zipf=EXPONENT, or a file that exists")
    try:
        words = Path(text).read_text(encoding="utf-8").strip("[] \n").replace(",", " ").split()
        tokens = tuple(float(word) for word in words)
    except (ValueError, OSError):
        allowed = "tokens per expert: numbers with commas, blanks or line ends between"
        raise ConfigError("--load", "", text, allowed) from None
    return ExpertLoad.build(Path(text).name, kind="histogram", tokens=tokens)


def read_precision(formats: str | None, model: ModelSpec, phase: PhaseName) -> Precision:
    """The precision of ``--precision``; the model's own of the phase, or fp16, without it."""
    from chipsim.ops.precision import Precision

    if formats is not None:
        return Precision.parse(formats)
    return getattr(model.precision, phase) or Precision()


def read_phase(
    kind: str, batch: int, prompt: int | None, context: int | None, draft: int = 0
) -> Phase:
    """The phase of ``--phase`` with its tokens: ``--prompt`` or ``--context``."""
    from chipsim.ops.phase import Phase

    needed = {
        "prefill": ("--prompt", prompt, context),
        "decode": ("--context", context, prompt),
    }
    if kind not in needed:
        raise ConfigError("--phase", "", kind, ", ".join(needed))
    option, tokens, other = needed[kind]
    if tokens is None:
        raise ChipsimError(f"{option}: required by {kind}")
    if other is not None:
        wrong = "--context" if kind == "prefill" else "--prompt"
        raise ConfigError(wrong, "", other, f"{option}, which {kind} takes instead")
    if kind == "decode":
        return Phase.decode(batch, tokens, draft)
    if draft:
        raise ConfigError("--draft", "", draft, "0 in prefill: drafted tokens are decode's")
    return Phase.prefill(batch, tokens)


def whole_numbers(option: str, text: str, *, least: int = 1) -> tuple[int, ...]:
    """``512,2048`` (`ConfigError`)."""
    parts = [part.strip() for part in text.split(",")]
    good = all(part.isascii() and part.isdecimal() and len(part) < 16 for part in parts)
    if not good or min(map(int, parts)) < least:
        raise ConfigError(option, "", text, f"whole numbers from {least}: 512,2048")
    numbers = tuple(map(int, parts))
    if len(set(numbers)) < len(numbers):
        raise ConfigError(option, "", text, "each number once")
    return numbers
