"""Validation: estimates beside silicon, LLMCompass and papers, figure by figure."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, dcc, html

from chipsim.arch_configs import names
from chipsim.errors import ChipsimError
from chipsim.present.command import command
from chipsim.present.dashboard.parts import (
    card,
    card_outputs,
    choose,
    filled,
    labelled,
    listing,
    nothing,
)
from chipsim.present.dashboard.state import Choice, Fields, query_of
from chipsim.present.quantities import grouped, percent
from chipsim.present.silicon import silicon_figure
from chipsim.present.tables import BESIDE, validation_cells
from chipsim.present.validation import pooled_suites, validation_figure
from chipsim.validation import SUITES, validate
from chipsim.validation.suites import APART

if TYPE_CHECKING:
    from chipsim.validation import ValidationResult

PATH, NAME = "/validation", "Validation"

ALL_SUITES = "llmcompass"

TRANSFER = "silicon-transfer"
"""``silicon``, each chip under the block of the one before it."""

NAMES = {
    "silicon": "measured operators",
    TRANSFER: "measured operators, factors of the chip before",
    "machines": "measured machines",
    ALL_SUITES: "LLMCompass, papers, eager kernels: all",
    **{name: name for name in SUITES},
}
"""Suites, and what is shown for them."""

ABOUT = {
    **APART,
    TRANSFER: f"{APART['silicon']}, under the block of the chip that came before",
    ALL_SUITES: "all suites; a suite of LLMCompass's own errors is drawn on demand",
    **SUITES,
}

FIELDS: Fields = {
    "suite": Choice("silicon", lambda: tuple(NAMES)),
    "execution": Choice("", lambda: ("", *names("executions"))),
}

CARD = "validation-points"


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    blocks = choose(
        "validation-execution", state["execution"], ("", *names("executions")), "of each chip"
    )
    return [
        html.Aside(
            [
                html.Div(
                    [
                        labelled("suite", choose("validation-suite", state["suite"], NAMES)),
                        labelled("execution block", blocks),
                    ],
                    className="controls",
                ),
                html.P(id="validation-about", className="label"),
            ]
        ),
        html.Div(
            [
                html.Div(card(CARD, wide=True), className="cards"),
                html.Section(
                    [html.H2("Errors"), dcc.Loading(html.Div(id="validation-table"))],
                    className="card",
                ),
            ]
        ),
    ]  # fmt: skip


def register(app: Dash) -> None:
    """The page's callbacks."""

    @app.callback(
        output={
            "card": card_outputs(CARD),
            "table": Output("validation-table", "children"),
            "about": Output("validation-about", "children"),
        },
        inputs={
            "suite": Input("validation-suite", "value"),
            "execution": Input("validation-execution", "value"),
            "theme": Input("theme", "data"),
        },
    )
    def draw(suite: str, execution: str, theme: str | None) -> dict[str, Any]:
        del theme
        return answer(suite, execution or "")


@functools.lru_cache(maxsize=16)
def judged(suite: str, execution: str) -> ValidationResult:
    """Every figure of a suite beside our estimate."""
    name, transfer = _suite(suite)
    return validate(name, execution=execution or None, transfer=transfer)


def _suite(shown: str) -> tuple[str, bool]:
    """Name of a suite, and whether blocks come from the chip before."""
    return ("silicon", True) if shown == TRANSFER else (shown, False)


def answer(suite: str, execution: str) -> dict[str, Any]:
    """Everything that the page shows."""
    link = PATH + query_of(FIELDS, {"suite": suite, "execution": execution})
    try:
        found = judged(suite, execution)
    except ChipsimError as error:
        return {"card": nothing(str(error), link), "table": [], "about": ""}
    name, transfer = _suite(suite)
    told = command(
        f"validate {name}", transfer=transfer or None, execution=execution or None, json=True
    )
    figure = silicon_figure(found) if found.beside else validation_figure(found)
    figure.update_layout(legend={"font": {"size": 12}})
    table = _operators(found) if found.beside else _table(found)
    return {"card": filled(figure, told, link), "table": table, "about": ABOUT[suite]}


def _operators(found: ValidationResult) -> Any:
    """Errors by chip, operator and format, those of plain models beside."""
    frame = found.frame()
    whole = frame[(frame["regime"] == "all") & (frame[["chip", "dtype"]] != "all").all(axis=1)]
    beside = {name: BESIDE[name] for name in BESIDE if name in frame.columns}
    head = ("chip", "operator", "figures", "mean error", "median", "90 % within", "bias")
    rows = [
        (
            row["chip"],
            f"{row['operator']} {row['dtype']}",
            grouped(row["n"]),
            *(percent(row[key]) for key in ("mape", "median_ape", "p90_ape")),
            f"{100 * row['bias']:+.1f} %",
            *(percent(row[key]) if row[key] == row[key] else "" for key in beside),
        )
        for row in whole.to_dict("records")
    ]
    return listing([(*head, *beside.values()), *rows])


def _table(found: ValidationResult) -> Any:
    frame = found.frame()
    head = ("suite", "figures", "mean error", "median", "90 % within", "bias")
    rows = [
        (
            row["suite"],
            grouped(row["n"]),
            *(percent(row[key]) for key in ("mape", "median_ape", "p90_ape")),
            f"{100 * row['bias']:+.1f} %",
        )
        for row in pooled_suites(frame)
    ]
    detail = html.Details(
        [html.Summary("By chip, operator and format"), listing(validation_cells(frame))]
    )
    return [listing([head, *rows]), detail]
