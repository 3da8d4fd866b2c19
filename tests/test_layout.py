"""The wheel, the links and the folders describe one tree."""

from __future__ import annotations

import fnmatch
import os
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS: dict[str, str] = SETUPTOOLS["package-dir"]
LINKED = sorted(name.split(".")[1] for name in FOLDERS if "." in name)


def files_of(folder: Path) -> list[Path]:
    """Files below a folder, links not followed, left-overs of runs left out."""
    return [
        Path(base, name)
        for base, _, names in os.walk(folder)
        for name in names
        if "__pycache__" not in base
    ]


def test_every_package_is_listed() -> None:
    found = set()
    for name, folder in FOLDERS.items():
        for init in files_of(ROOT / folder):
            if init.name == "__init__.py":
                tail = init.parent.relative_to(ROOT / folder).parts
                found.add(".".join((name, *tail)))
    assert found == set(SETUPTOOLS["packages"])


@pytest.mark.parametrize("package", FOLDERS)
def test_every_module_is_in_a_package(package: str) -> None:
    folder = ROOT / FOLDERS[package]
    for path in files_of(folder):
        if path.suffix == ".py":
            assert (path.parent / "__init__.py").is_file(), path


@pytest.mark.parametrize("package", FOLDERS)
def test_every_data_file_is_shipped(package: str) -> None:
    patterns = SETUPTOOLS["package-data"].get(package, [])
    for path in files_of(ROOT / FOLDERS[package]):
        if path.suffix != ".py":
            tail = path.relative_to(ROOT / FOLDERS[package]).as_posix()
            # `**/` of a package-data pattern also matches no folder at all.
            shipped = any(
                fnmatch.fnmatch(f"/{tail}", f"*{p.removeprefix('**')}") for p in patterns
            )
            assert shipped, f"{tail} matches no pattern of {package} in package-data"


@pytest.mark.parametrize("name", LINKED)
def test_link_points_at_its_folder(name: str) -> None:
    assert (ROOT / "chipsim" / name).readlink() == Path("..") / name
