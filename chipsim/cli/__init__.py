"""Floor 7: commands, a few lines each over the functions of the floors below."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the interpreter with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process unless given.

    Raises
    ------
    SystemExit
        0 done, 2 a request that cannot be answered, 70 a bug, 130 interrupted.
    """
    from chipsim.cli.run import run

    # Estimates are small objects by the million that live on: looked through every 700 of
    # them, as is the default, a fifth of a table's time goes there.
    gc.set_threshold(20_000, 20, 20)
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
