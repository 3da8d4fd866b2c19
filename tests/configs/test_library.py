"""Every chip and model of the library loads, and says where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from chipsim.arch_configs import names
from chipsim.arch_configs.find import LIBRARY
from chipsim.chip import Chip
from chipsim.errors import ChipsimError, UnknownNameError
from chipsim.ops.formats import FORMATS
from chipsim.ops.model import ModelSpec
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    from pathlib import Path

CHIPS = [
    "a100-sxm",
    "b200-sxm",
    "h100-sxm",
    "h200-sxm",
    "llmcompass-a100",
    "llmcompass-ga100",
    "llmcompass-h100",
    "llmcompass-latency",
    "llmcompass-mi210",
    "llmcompass-throughput",
    "llmcompass-tpu-v3",
    "mi210",
    "mi300x",
    "spad-decode",
    "spad-early-decode",
    "spad-early-prefill",
    "spad-h100",
    "spad-prefill",
    "tpu-v3",
]
MODELS = [
    "bloom-176b",
    "gpt3-175b",
    "llama-2-13b",
    "llama-2-70b",
    "llama-2-7b",
    "llama-3.1-405b",
    "llama-3.1-70b",
    "llama-3.1-8b",
    "opt-30b",
    "opt-66b",
]
FILES = sorted([*(LIBRARY / "chips").glob("*.yaml"), *(LIBRARY / "models").glob("*.yaml")])

PARAMETERS = {
    # as counted from the published weights; GPT-3's are not published: its paper's 175 B
    "bloom-176b": (176_247_271_424, 0),
    "gpt3-175b": (175e9, 0.005),
    "llama-2-7b": (6_738_415_616, 0),
    "llama-2-13b": (13_015_864_320, 0),
    "llama-2-70b": (68_976_648_192, 0),
    "llama-3.1-8b": (8_030_261_248, 0),
    "llama-3.1-70b": (70_553_706_496, 0),
    "llama-3.1-405b": (405_853_388_800, 0),
    "opt-30b": (29_974_540_288, 0),
    "opt-66b": (65.72e9, 0.001),
}

KV_BYTES = {
    # 2 x layers x KV heads x head width x 2 bytes
    "bloom-176b": 4_014_080,
    "llama-2-7b": 524_288,
    "llama-2-70b": 327_680,
    "llama-3.1-8b": 131_072,
    "llama-3.1-70b": 327_680,
}


def test_the_library_holds_every_chip_and_model_that_is_promised() -> None:
    assert set(CHIPS) <= set(names("chips"))
    assert set(MODELS) <= set(names("models"))


@pytest.mark.parametrize("name", names("chips"))
def test_a_chip_loads_and_names_its_source(name: str) -> None:
    chip = Chip.load(name)
    assert chip.name == name
    assert len(chip.source) > 10
    assert chip.description


@pytest.mark.parametrize("name", names("models"))
def test_a_model_loads_and_names_its_source(name: str) -> None:
    model = ModelSpec.load(name)
    assert model.name == name
    assert len(model.source) > 10
    assert model.description


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_begins_with_a_comment_that_says_what_it_is(path: Path) -> None:
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert second.startswith(("#", "name:"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_key_is_written_twice(path: Path) -> None:
    assert _keys(yaml.compose(path.read_text(encoding="utf-8")))


def _keys(node: yaml.Node | None) -> bool:
    if not isinstance(node, yaml.MappingNode):
        return True
    keys = [key.value for key, _ in node.value]
    return len(keys) == len(set(keys)) and all(_keys(value) for _, value in node.value)


@pytest.mark.parametrize("name", names("chips"))
def test_arrays_support_known_formats_only(name: str) -> None:
    array = Chip.load(name).core.systolic_array
    assert array is not None
    assert set(array.macs_per_cycle) <= set(FORMATS)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_parameters_are_the_published_ones(name: str) -> None:
    published, tolerance = PARAMETERS[name]
    assert ModelSpec.load(name).parameters == pytest.approx(published, rel=tolerance, abs=0)


@pytest.mark.parametrize("name", sorted(KV_BYTES))
def test_kv_bytes_of_a_token(name: str) -> None:
    assert ModelSpec.load(name).kv_bytes_per_token(Precision()) == KV_BYTES[name]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("h100-smx", "h100-sxm"),
        ("spad-prefil", "spad-prefill"),
        ("a100", "a100-sxm"),
        ("MI300X", "mi300x"),
    ],
)
def test_a_misspelt_chip_is_suggested(name: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=meant) as caught:
        Chip.load(name)
    assert "\n" not in str(caught.value)


def test_a_misspelt_model_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match=r"llama-3\.1-70b"):
        ModelSpec.load("llama3.1-70b")


def test_a_path_that_is_no_file_is_said_so() -> None:
    with pytest.raises(ChipsimError, match=r"missing\.yaml: no such file"):
        Chip.load("missing.yaml")
