"""Imports keep to the floors: the contracts of pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "pyproject.toml"
CONTRACTS = tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"]


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_contract_is_kept(contract: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = lint_imports(
        config_filename=str(CONFIG), limit_to_contracts=(contract,), no_cache=True, no_logo=True
    )
    assert code == 0, capsys.readouterr().out
