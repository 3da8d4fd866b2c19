"""Our YAML of an imported model reads back equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.arch_configs import names
from chipsim.importers import import_model, model_to_yaml
from chipsim.importers.hf_kinds import runs
from chipsim.ops.model import ModelSpec
from tests.importers.files import write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_import_reads_back_equal(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.yaml"
    imported = import_model(write(tmp_path, PUBLISHED[name].config), out)
    assert ModelSpec.load(str(out)) == imported.model


@pytest.mark.parametrize("name", names("models"))
def test_a_model_of_the_library_reads_back_equal(tmp_path: Path, name: str) -> None:
    model = ModelSpec.load(name)
    out = tmp_path / "out.yaml"
    out.write_text(model_to_yaml(model), encoding="utf-8")
    assert ModelSpec.load(str(out)) == model


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=200))
def test_runs_say_the_order(order: list[str]) -> None:
    written = [kind for run in runs(order) for kind in run["kinds"] * run.get("times", 1)]
    assert written == order


def test_a_pattern_is_one_run() -> None:
    assert runs(["w"] * 5 + ["f"]) == [{"kinds": ["w"], "times": 5}, {"kinds": ["f"]}]
    assert runs((["w"] * 5 + ["f"]) * 8) == [{"kinds": ["w"] * 5 + ["f"], "times": 8}]
