"""No kernel of the engine reads or writes outside its arrays, whose places are not checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAST_AND_NEXT = """
import numpy as np
from chipsim.cluster.engine.view import ViewType, cells_type, table_of, view_of
from chipsim.kernels.jit import kernel
look = view_of(ViewType((("cells", cells_type("i8", 1)),)))
@kernel
def at(table, place):
    return look(table).cells[place]
array = np.arange(3)
print(at(table_of([array]), 2))
print(at(table_of([array]), 3))
"""
EVERYTHING = """
from chipsim.cluster.engine import run
from chipsim.cluster.simulate import simulate
from tests.cluster.scenarios import seeded
from tests.cluster.test_against_oracle import FAMILIES
for family in FAMILIES.values():
    for seed in range(60):
        given = seeded(family, seed).given()
        run(**given)
        run(**given | {"options": given["options"]._replace(log_steps=False)})
simulate("spad-code", instances={"prefill": 18, "decode": 7})
simulate("bloom-conversation")
print("all inside")
"""


def checked(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with every place looked at; kernels are compiled anew for that."""
    (folder / "script.py").write_text(script)
    given = {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return subprocess.run(
        [sys.executable, folder / "script.py"], env=os.environ | given,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_place_outside_is_an_error_where_that_is_asked_for(tmp_path: Path) -> None:
    ran = checked(LAST_AND_NEXT, tmp_path)
    assert ran.stdout == "2\n"
    assert "IndexError: no such place on axis 0 of int64" in ran.stderr


@pytest.mark.slow
def test_every_place_is_inside(tmp_path: Path) -> None:
    """Whatever families of scenarios and two published clusters do."""
    ran = checked(EVERYTHING, tmp_path)
    assert ran.stdout == "all inside\n", ran.stderr
