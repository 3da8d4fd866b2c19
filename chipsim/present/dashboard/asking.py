"""The controls that say which phase of which model runs on which chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import Input, html

from chipsim.arch_configs import names
from chipsim.present.dashboard.live import Asked
from chipsim.present.dashboard.parts import choose, labelled, number, text
from chipsim.present.dashboard.state import Choice, Number, Text

FIELDS: dict[str, Choice | Number | Text] = {
    "chip": Choice("spad-h100", lambda: names("chips")),
    "model": Choice("bloom-176b", lambda: names("models")),
    "phase": Choice("decode", lambda: ("prefill", "decode")),
    "batch": Number(64, 1, 100_000, whole=True),
    "length": Number(1024, 1, 10_000_000, whole=True),
    "plan": Text("tp=8"),
    "precision": Text(""),
    "execution": Choice("", lambda: ("", *names("executions"))),
    "prices": Choice("spad-2025", lambda: names("prices")),
}
"""What is asked, with what a page opens on: SPAD's argument."""

HINTS = {
    "length": "Prompt tokens of prefill, or tokens attended to in decode, of one sequence",
    "plan": "How the model is split: tp=8, or tp=8,pp=2",
    "precision": "fp16, bf16, fp8, or weights=nvfp4,activations=fp8,kv=fp8; "
    "empty: the model's own",
    "execution": "Efficiencies of the machine; empty: the chip's own block",
}

TITLES = {"execution": "execution block", "length": "tokens of a sequence", "prices": "prices"}


def controls(prefix: str, state: Mapping[str, Any], without: tuple[str, ...] = ()) -> html.Div:
    """A control for each field."""
    shown = [name for name in FIELDS if name not in without]
    return html.Div(
        [
            labelled(TITLES.get(name, name), _control(prefix, name, state), HINTS.get(name, ""))
            for name in shown
        ],
        className="controls",
    )


def _control(prefix: str, name: str, state: Mapping[str, Any]) -> Any:
    field, key = FIELDS[name], f"{prefix}-{name}"
    if isinstance(field, Choice):
        options = [
            {"label": each or "of the chip", "value": each} for each in field.names()
        ]
        return choose(key, state[name], options)  # type: ignore[arg-type]  # dash takes both
    if isinstance(field, Number):
        return number(key, state[name], field.low, field.high)
    return text(key, state[name], "the model's own" if name == "precision" else "tp=1")


def inputs(prefix: str, without: tuple[str, ...] = ()) -> dict[str, Input]:
    """The controls' values, for a callback."""
    return {
        name: Input(f"{prefix}-{name}", "value") for name in FIELDS if name not in without
    }


def asked(values: Mapping[str, Any]) -> Asked:
    """The question in the values of the controls; what was cleared is as at the start."""
    whole = {
        name: field.default if values.get(name) in (None, "") and name != "execution"
        and name != "precision" and name != "plan" else values.get(name) or ""
        for name, field in FIELDS.items()
    }  # fmt: skip
    return Asked(
        whole["chip"], whole["model"], whole["phase"], int(whole["batch"]),
        int(whole["length"]), whole["plan"].strip(), whole["precision"].strip(),
        whole["execution"], whole["prices"],
    )  # fmt: skip
