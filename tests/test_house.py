"""What holds for the repository as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import chipsim

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES = [
    Requirement(line)
    for line in (
        *PROJECT["project"]["dependencies"],
        *(
            line
            for extra in PROJECT["project"]["optional-dependencies"].values()
            for line in extra
        ),
        *PROJECT["dependency-groups"]["dev"],
    )
]
HEAVY = "numba networkx pandas pint plotly pyarrow scipy"
"""Libraries that only the work itself may load: each costs a start-up 0.1 s or more."""


def tracked() -> list[Path]:
    """Text files that git knows."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - the git of whoever made this clone
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


def heavy_after(code: str) -> str:
    """Heavy libraries that a fresh interpreter holds after running the code."""
    tail = f"import sys; print(*({set(HEAVY.split())} & sys.modules.keys()), file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\n{tail}"],
        cwd=ROOT.parent, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return ran.stderr.strip()


def test_import_loads_nothing_heavy() -> None:
    assert heavy_after("import chipsim") == ""


@pytest.mark.parametrize(
    "arguments", ["--help", "cuts --help", "estimate --help", "workload --help"]
)
def test_help_loads_nothing_heavy(arguments: str) -> None:
    code = f"""
import contextlib, sys
from chipsim.cli import main
sys.argv = ["chipsim", *{arguments.split()}]
with contextlib.suppress(SystemExit):
    main()
"""
    assert heavy_after(code) == ""


@pytest.mark.parametrize("name", chipsim.__all__)
def test_public_name_is_there(name: str) -> None:
    assert getattr(chipsim, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        _ = chipsim.nonesuch  # type: ignore[attr-defined]


@pytest.mark.parametrize("dependency", DEPENDENCIES, ids=lambda d: d.name)
def test_dependency_has_its_reason_and_its_pin(dependency: Requirement) -> None:
    assert f"| {dependency.name} |" in (ROOT / "docs/dependencies.md").read_text()
    pins = re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text())
    versions = [v for name, v in pins if name == canonicalize_name(dependency.name)]
    assert len(versions) == 1, "run `make lock`"
    assert versions[0] in dependency.specifier, "run `make lock`"


def test_lock_holds_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for pin in re.split(r"\n(?=[\w.-]+==)", lock)[1:]:
        assert "--hash=sha256:" in pin
    assert not re.search(r"https?:|file:|://|^-", lock, re.MULTILINE)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"(?<![\w.])/(work|root|tmp|opt)/\w", id="path-of-one-machine"),
        pytest.param(r"pypi\.org|pythonhosted|npmjs|deb\.debian", id="host-of-a-registry"),
        pytest.param(r"\b(TODO|FIXME|XXX)\b", id="unfinished"),
    ],
)
def test_no_tracked_text_holds(pattern: str) -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path != Path(__file__) and re.search(pattern, path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.slow
def test_wheel_holds_every_module_and_data_file(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True, capture_output=True,
    )  # fmt: skip
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        shipped = {name for name in wheel.namelist() if name.startswith("chipsim/")}
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    expected = {
        (Path(*package.split(".")) / path.relative_to(ROOT / folder)).as_posix()
        for package, folder in folders.items()
        for path in tracked()
        if path.is_relative_to(ROOT / folder)
    }
    assert shipped == expected


def test_no_public_name_is_hidden_by_a_module() -> None:
    """Importing ``chipsim.estimate`` the module would overwrite the function of that name."""
    modules = {path.stem for path in (ROOT / "chipsim").iterdir()}
    assert not modules & set(chipsim.__all__)
