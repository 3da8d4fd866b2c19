"""Every command that the documents show runs; the Python ones are doctests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from chipsim.cli.run import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = sorted(
    {
        line.removeprefix("$ ")
        for page in PAGES
        for block in re.findall(
            r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        )
        for line in block.splitlines()
        if line.startswith("$ ")
    }
)


def test_the_documents_show_commands() -> None:
    assert len(COMMANDS) > 20
    assert all(command.startswith("chipsim ") for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status = run(shlex.split(command)[1:])
    out, err = capsys.readouterr()
    assert status == 0, err
    assert out.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("https:"):
            assert (page.parent / target).exists(), target
