"""Progress of long work: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Counted = Callable[[int, int, str], None]


@contextmanager
def counting(what: str) -> Iterator[Counted | None]:
    """Something to tell ``(done, of at the most, best so far)``; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from chipsim.cli.output import console

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
    )
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(what, total=None, best="")

        def told(done: int, most: int, best: str) -> None:
            bar.update(task, completed=done, total=most, best=best)

        yield told
