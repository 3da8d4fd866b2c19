"""Imported models against what their authors publish, and against another program's count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chipsim.arch_configs import names
from chipsim.importers import import_huggingface
from chipsim.ops.layers import Experts
from chipsim.ops.model import ModelSpec
from tests.importers.counted import COUNTED
from tests.importers.files import write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.importers import Imported


def imported(folder: Path, name: str) -> Imported:
    return import_huggingface(write(folder, PUBLISHED[name].config, f"{name}.json"))


def router_biases(model: ModelSpec) -> int:
    mlps = [(group.layer.mlp, group.count) for group in model.groups]
    return sum(
        mlp.experts * count
        for mlp, count in mlps
        if isinstance(mlp, Experts) and mlp.router_bias
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(tmp_path: Path, name: str) -> None:
    published = PUBLISHED[name]
    model = imported(tmp_path, name).model
    assert model.parameters / 1e9 == pytest.approx(published.total_b, rel=0.01)
    if published.active_b is not None:
        active = model.active_parameters / 1e9
        assert active == pytest.approx(published.active_b, rel=0.025)


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_that_another_program_counts(tmp_path: Path, name: str) -> None:
    model = imported(tmp_path, name).model
    assert model.parameters - COUNTED[name] in {0, router_biases(model)}


@pytest.mark.parametrize("name", [n for n, p in PUBLISHED.items() if p.kv_bytes is not None])
def test_bytes_of_a_token_are_those_by_hand(tmp_path: Path, name: str) -> None:
    assert imported(tmp_path, name).kv_bytes_per_token == PUBLISHED[name].kv_bytes


SHAPE = ("layers", "parameters", "active_parameters", "kv_elements_per_token", "biases")


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) & set(names("models"))))
def test_an_import_has_the_shape_of_the_library(tmp_path: Path, name: str) -> None:
    model, ours = imported(tmp_path, name).model, ModelSpec.load(name)
    for key in SHAPE:
        assert getattr(model, key) == getattr(ours, key), key
    assert [group.count for group in model.groups] == [group.count for group in ours.groups]
    for mine, other in zip(model.groups, ours.groups, strict=True):
        assert (mine.layer.mixer, mine.layer.mlp) == (other.layer.mixer, other.layer.mlp)
