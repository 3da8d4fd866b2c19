"""Messages about a chip name the file that the user gave, and the field in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipsim.arch_configs.find import LIBRARY
from chipsim.chip import Chip
from chipsim.cost import chip_cost
from chipsim.cost.energy import EnergyModel
from chipsim.errors import ChipsimError


def written(tmp_path: Path, *changes: tuple[str, str]) -> str:
    """A file of the user's whose name is not the chip's."""
    text = (LIBRARY / "chips" / "spad-prefill.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("technology: GDDR7", "technology: GDDR9", "memory.technology"),
        ("process: ", "process: 1nm  # ", "process"),
    ],
)
def test_costs_name_the_file_and_the_field(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    file = written(tmp_path, (old, new))
    for of in (chip_cost, lambda name: EnergyModel(Chip.load(name))):
        with pytest.raises(ChipsimError, match=rf"^mine\.yaml: {field}: "):
            of(file)
    with pytest.raises(ChipsimError, match=r"^mine\.yaml: "):
        chip_cost(Chip.load(file).scaled(cores=0.5))


def test_a_chip_is_the_same_from_any_file(tmp_path: Path) -> None:
    mine, library = Chip.load(written(tmp_path)), Chip.load("spad-prefill")
    assert (mine.where, library.where) == ("mine.yaml", "spad-prefill")
    assert mine == library
    assert mine != library.scaled(clock=0.5)
    assert chip_cost(mine).total_usd == chip_cost(library).total_usd
