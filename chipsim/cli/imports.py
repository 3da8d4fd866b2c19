"""``import``: other tools' descriptions as our YAML."""

from __future__ import annotations

from typing import Annotated

import typer

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, remark, show


def llmcompass(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A JSON of its configs/.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write our YAML.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a chip from LLMCompass's JSON configuration."""
    from chipsim.importers import import_chip

    chip, warnings = import_chip(path, out)
    if as_json:
        from chipsim.present.describe import chip_record

        emit({"name": chip.name, "warnings": warnings, "chip": chip_record(chip)})
    else:
        from chipsim.present.describe import chip_lines
        from chipsim.present.tables import footer_line, heading, lines_table

        show(heading(f"{chip.name} – {chip.description}"), lines_table(chip_lines(chip, {})))
        show(*(footer_line(f"warning: {warning}") for warning in warnings))
    if out is not None:
        remark(f"wrote {out}")


def huggingface(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A config.json, or the folder that holds it.")
    ],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write our YAML.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a model from a Hugging Face configuration; nothing is fetched."""
    from chipsim.importers import import_model

    imported = import_model(path, out)
    if as_json:
        from chipsim.present.imported import imported_record

        emit(imported_record(imported))
    else:
        from chipsim.present.imported import imported_lines
        from chipsim.present.tables import footer_line, heading, lines_table

        model = imported.model
        show(heading(f"{model.name} – {imported.architecture}"))
        show(lines_table(imported_lines(imported)))
        show(*(footer_line(f"warning: {warning}") for warning in imported.warnings))
    if out is not None:
        remark(f"wrote {out}")
