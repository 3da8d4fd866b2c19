"""Run a command: its errors in one line on stderr, and its exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import cast

import typer

from chipsim.cli.app import command
from chipsim.errors import ChipsimError, InternalError

DONE, BROKEN_PIPE, REFUSED, BUG, INTERRUPTED = 0, 1, 2, 70, 130
USAGE = cast(type[Exception], typer.BadParameter.__base__)
"""What the parser raises; typer names it only as the base of BadParameter."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line.

    Returns
    -------
    int
        0 done, 1 the reader of a pipe has left, 2 a request that cannot be answered,
        70 a bug of chipsim, 130 interrupted.
    """
    _never_fail_to_encode()
    try:
        code = command()(list(arguments), prog_name="chipsim", standalone_mode=False)
        sys.stdout.flush()
    except USAGE as error:
        return _usage(error)
    except BrokenPipeError:
        # Python flushes once more when it ends, which would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ChipsimError, OSError) as error:
        return _refuse(_message(error))
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence against tracebacks
        return _bug(error)
    return code if isinstance(code, int) else DONE


def _never_fail_to_encode() -> None:
    """A terminal without µ or × gets a ``?`` instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _usage(error: BaseException) -> int:
    message = str(getattr(error, "format_message", lambda: error)())
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return REFUSED
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "chipsim"
    return _refuse(f"{message.rstrip('.')}; see `{path} --help`")


def _message(error: ChipsimError | OSError) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _refuse(message: str) -> int:
    typer.echo(f"chipsim: error: {' '.join(message.split())}", err=True)
    return REFUSED


def _bug(error: Exception) -> int:
    if os.environ.get("CHIPSIM_DEBUG") == "1":
        traceback.print_exception(error)
    told = str(error) or type(error).__name__
    if not isinstance(error, InternalError):
        told = f"{type(error).__name__}: {told} (a bug in chipsim: please report it)"
    hint = "CHIPSIM_DEBUG=1 shows where"
    typer.echo(f"chipsim: error: {' '.join(told.split())}; {hint}", err=True)
    return BUG
