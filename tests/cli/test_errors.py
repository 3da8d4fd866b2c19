"""Whatever is asked wrongly gets one line that says what is allowed, and code 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim.cli import lists

if TYPE_CHECKING:
    from tests.cli.conftest import Command

GEMM = "estimate gemm --chip spad-h100 --execution ideal"
PREFILL = "estimate prefill --model bloom-176b --execution ideal"
CUTS = "cuts --chip spad-h100 --model bloom-176b --tp 8 --phase prefill --prompt 64"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("estimate gemm --chip spad-h1000 -m 1 -n 1 -k 1", "did you mean spad-h100"),
        ("estimate gemm --chip nowhere/a.yaml -m 1 -n 1 -k 1", "nowhere/a.yaml: no such file"),
        (f"{GEMM} -m 1 -n 1 -k 1 --execution idael", "did you mean ideal"),
        (f"{GEMM} -m 0 -n 1 -k 1", "gemm: m: 0 is not allowed"),
        (f"{GEMM} -m 1 -n -7 -k 1", "gemm: n: -7 is not allowed"),
        (f"{GEMM} -m nan -n 1 -k 1", "'-m'"),
        (f"{GEMM} -m 1.5 -n 1 -k 1", "'-m'"),
        (f"{GEMM} -m {10**16} -n 1 -k 1", "a whole number from 1 to"),
        (f"{GEMM} -m 1 -n 1", "Missing option '-k'"),
        (f"{GEMM} -m 1 -n 1 -k 1 --colour", "No such option: --colour"),
        (f"{GEMM} -m 1 -n 1 -k 1 --dtype fp17", "precision: weights: 'fp17'"),
        (
            "estimate all-reduce --chip spad-h100 --chips 8 --bytes nan",
            "all-reduce: bytes: nan",
        ),
        ("estimate all-reduce --chip spad-h100 --chips 8 --bytes 5GHz", "--bytes: '5GHz'"),
        ("estimate all-reduce --chip tpu-v3 --chips 9 --bytes 8", "its machine has 4"),
        ("estimate gelu --chip spad-h100", "--elements N"),
        ("estimate nothing", "No such command 'nothing'"),
        ("frobnicate", "No such command 'frobnicate'"),
        (f"{PREFILL} --chip spad-h100 --prompt 64", "too little"),
        (f"{PREFILL} --chip spad-h100 --prompt 64 --tp 3", "allowed: 1, 2, 4, 7, 8"),
        (f"{PREFILL} --chip spad-h100 --prompt 64 --tp 0", "'--tp'"),
        (f"{PREFILL} --chip spad-h100 --prompt 64 --tp 8 --plan tp=8", "not both"),
        (f"{PREFILL} --chip spad-h100 --prompt 64 --plan pp=71", "pp: 71 is not allowed"),
        (f"{PREFILL} --chip spad-h100 --prompt 0 --tp 8", "prefill: prompt: 0"),
        ("estimate decode --chip spad-h100 --model blom-176b --context 8", "bloom-176b"),
        ("memory --chip spad-h100 --model bloom-176b --tp 5", "allowed: 1, 2, 4"),
        ("memory --chip spad-h100 --model bloom-176b --share nan", "memory: share: nan"),
        ("memory --chip spad-h100 --model bloom-176b --share 1.5", "at most 1"),
        (f"{CUTS} --resource colour --fractions 1", "unknown resource 'colour'"),
        (f"{CUTS} --resource cores --fractions 1,0", "--fractions"),
        (f"{CUTS} --resource cores --fractions nan", "--fractions"),
        (f"{CUTS} --resource memory_bandwidth --values 5GB", "a bandwidth above 0"),
        (f"{CUTS} --resource cores", "give each resource one list"),
        (f"{CUTS} --resource cores --fractions 1 --batch few", "--batch: 'few'"),
        (f"{CUTS} --resource cores --fractions 1 --itl 5m", "--itl: '5m'"),
        (f"{CUTS} --resource cores --fractions 1 --out a.gif", "a name ending in .html"),
        (f"{CUTS} --resource cores --fractions 1 --context 5", "--context: 5"),
        (f"{CUTS} --resource cores --fractions 1 --out nowhere/a.csv", "nowhere/a.csv"),
        ("cuts --chip spad-h100 --model bloom-176b --phase rest --resource l2", "--phase"),
        ("compare spad-h100 spad-h10 --model bloom-176b --phase decode --context 8", "mean"),
        ("compare ideal ideal --model bloom-176b --phase decode --context 8", "give --chip"),
        ("validate nothing", "unknown suite 'nothing'"),
        ("validate --data nowhere", "nowhere: no such folder"),
        ("import llmcompass nowhere.json", "nowhere.json: no such file"),
        ("calibrate nothing", "nothing"),
        ("show nothing", "unknown chip, model, block, engine, price book or workload"),
    ],
)
def test_one_line_says_what_is_wrong(chipsim: Command, command: str, told: str) -> None:
    ran = chipsim(command)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("chipsim: error: ")
    assert told in ran.err


def test_a_bug_is_no_user_error(chipsim: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(lists, "chips", broken)
    monkeypatch.delenv("CHIPSIM_DEBUG", raising=False)
    ran = chipsim("chips")
    assert ran.code == 70
    assert ran.err.count("\n") == 1
    assert "a bug in chipsim: please report it" in ran.err
    monkeypatch.setenv("CHIPSIM_DEBUG", "1")
    assert "Traceback" in chipsim("chips").err


def test_an_interrupt_is_quiet(chipsim: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lists, "chips", interrupted)
    ran = chipsim("chips")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_nothing_asked_shows_the_commands(chipsim: Command) -> None:
    ran = chipsim("estimate")
    assert ran.code == 2
    assert "all-reduce" in ran.err


def spawned(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the module in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-m", "chipsim", *arguments],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_the_module_is_the_command() -> None:
    ran = spawned("show", "spad-h10")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(
        "chipsim: error: unknown chip, model, block, engine, price book or workload "
        "'spad-h10'; did you mean spad-h100"
    )
    assert spawned("--version").stdout.startswith("chipsim ")


def test_a_closed_pipe_is_quiet() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "chipsim", "chips", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 1
        assert process.stderr.read() == ""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c_ends_with_130(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import signal, time\n"
        # Whoever starts the tests in the background makes them deaf to it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from chipsim.cli import lists, main\n"
        "lists.chips = lambda: (print('ready', flush=True), time.sleep(30))\n"
        "main(['chips'])\n"
    )
    with subprocess.Popen(
        [sys.executable, slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == ""


def test_help_loads_nothing_heavy() -> None:
    """What makes help slow is what it imports; its seconds are in the benchmarks."""
    code = (
        "import sys; sys.argv = ['chipsim', '--help']\n"
        "from chipsim.cli import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    loaded = set(done.stderr.split())
    assert "typer" in loaded
    heavy = {"numba", "numpy", "scipy", "pandas", "plotly", "pyarrow", "pydantic", "pint"}
    assert not loaded & heavy
