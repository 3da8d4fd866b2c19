"""The command line run inside the test's own process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chipsim.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command wrote and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Stdout as the one JSON object it must be, without NaN and infinities."""

        def refuse(constant: str) -> None:
            pytest.fail(f"{constant} in JSON")

        content: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return content


Command = Callable[..., Ran]


@pytest.fixture
def chipsim(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line: its words as arguments, or as one text without quotes."""

    def run(*words: str) -> Ran:
        arguments = words[0].split() if len(words) == 1 else list(words)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(code, captured.out, captured.err)

    return run
