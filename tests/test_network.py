"""Groups of chips on machines: who shares a node, and exchanges over several."""

from __future__ import annotations

import pytest
import yaml

from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.importers.chip_yaml import to_yaml
from chipsim.network import placed
from chipsim.ops.operators import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    SendRecv,
)
from chipsim.performance import PerformanceModel

H100 = Chip.load("spad-h100")


@pytest.mark.parametrize(
    ("chips", "stride", "local"),
    [(8, 1, 8), (64, 1, 8), (4, 2, 4), (8, 2, 4), (8, 8, 1), (8, 16, 1), (12, 1, 6), (2, 4, 2),
     (2, 8, 1), (7, 1, 7), (11, 1, 1), (1, 1, 1)],
)  # fmt: skip
def test_ranks_fill_machines_of_eight(chips: int, stride: int, local: int) -> None:
    assert placed(H100, chips, stride) == (local, chips // local)


@pytest.mark.parametrize("kind", [AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv])
@pytest.mark.parametrize(("chips", "stride"), [(2, 1), (8, 1), (64, 1), (8, 8), (16, 4)])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e9])
def test_every_exchange_is_above_its_lower_bound(
    kind: type[Collective], chips: int, stride: int, size: float
) -> None:
    found = PerformanceModel("spad-h100", "ideal").estimate(kind("x", size, chips, stride))
    assert found.lower_bound_s > 0
    assert found.latency_s >= found.lower_bound_s * (1 - 1e-12)
    assert found.bound == "link"
    assert found.latency_s == pytest.approx(sum(found.parts.values()))


def test_between_machines_is_held_by_scale_out() -> None:
    """8 chips of 8 machines, 1 GB each: 7/8 GB through a port of 50 GB/s."""
    model = PerformanceModel("spad-h100", "ideal")
    found = model.estimate(AllToAll("dispatch", 1e9, 8, stride=8))
    assert found.latency_s == pytest.approx(0.875e9 / 50e9)
    assert found.mapping == {"algorithm": "direct", "chips_per_machine": 1, "machines": 8}
    near = model.estimate(AllToAll("dispatch", 1e9, 8))
    assert near.latency_s < found.latency_s / 7


def test_a_launch_per_exchange_and_none_for_one_chip() -> None:
    model = PerformanceModel("spad-h100", "llmcompass-tables")
    launch = model.execution.launch.collective
    assert model.estimate(AllGather("x", 1.0, 8)).parts["launch"] == launch > 0
    assert model.estimate(AllGather("x", 1e9, 1)).latency_s == 0.0


def test_a_machine_that_stands_alone() -> None:
    alone = Chip.load("spad-early-prefill")
    with pytest.raises(InfeasibleError, match="16 chips; its machine has 8, and no scale_out"):
        placed(alone, 16, 1)
    with pytest.raises(InfeasibleError, match="2 chips that stand 8 apart; its machine has 8"):
        placed(alone, 2, 8)
    no_links = Chip.build("test", **(alone.model_dump() | {"link": None}))
    with pytest.raises(ConfigError, match="link"):
        placed(no_links, 2, 1)
    assert placed(no_links, 1, 1) == (1, 1)


def test_scale_out_is_written_and_read_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("chips") / "mine.yaml"
    path.write_text(to_yaml(H100), encoding="utf-8")
    assert Chip.load(str(path)) == H100
    assert "bandwidth: 50 GB/s" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("bad", ["50 GB", "0 GB/s", "-1 GB/s", "nan GB/s"])
def test_bad_scale_out_is_one_line(bad: str) -> None:
    content = yaml.safe_load(to_yaml(H100))
    content["machine"]["scale_out"]["bandwidth"] = bad
    with pytest.raises(
        ConfigError, match=r"mine\.yaml: machine\.scale_out\.bandwidth"
    ) as caught:
        Chip.read(content, "mine.yaml")
    assert "\n" not in str(caught.value)
