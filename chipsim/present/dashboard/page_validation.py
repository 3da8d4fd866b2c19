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
from chipsim.present.tables import validation_cells
from chipsim.present.validation import pooled_suites, validation_figure
from chipsim.validation import SUITES, validate

if TYPE_CHECKING:
    from chipsim.validation import ValidationResult

PATH, NAME = "/validation", "Validation"

ALL_SUITES = "llmcompass"

FIELDS: Fields = {
    "suite": Choice(ALL_SUITES, lambda: (ALL_SUITES, *SUITES)),
    "execution": Choice("", lambda: ("", *names("executions"))),
}

CARD = "validation-points"


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    suites = [{"label": "everything", "value": ALL_SUITES}, *(
        {"label": name, "value": name} for name in SUITES
    )]  # fmt: skip
    blocks = [{"label": name or "of each chip", "value": name} for name in FIELDS["execution"].names()]  # type: ignore[union-attr]  # a choice
    return [
        html.Aside(
            [
                html.Div(
                    [
                        labelled("suite", choose("validation-suite", state["suite"], suites)),  # type: ignore[arg-type]  # dash takes both
                        labelled("execution block", choose("validation-execution", state["execution"], blocks)),  # type: ignore[arg-type]  # dash takes both
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
                    [html.H2("Errors by suite"), dcc.Loading(html.Div(id="validation-table"))],
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
    return validate(suite, execution=execution or None)


def answer(suite: str, execution: str) -> dict[str, Any]:
    """Everything that the page shows."""
    link = PATH + query_of(FIELDS, {"suite": suite, "execution": execution})
    try:
        found = judged(suite, execution)
    except ChipsimError as error:
        return {"card": nothing(str(error), link), "table": [], "about": ""}
    told = command(f"validate {suite}", execution=execution or None, json=True)
    figure = validation_figure(found)
    figure.update_layout(legend={"font": {"size": 12}})
    about = SUITES.get(suite, "all suites; a suite of LLMCompass's own errors is drawn on demand")
    return {"card": filled(figure, told, link), "table": _table(found), "about": about}


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
