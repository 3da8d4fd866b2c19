"""``dashboard``: the pictures that move, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, remark
from chipsim.errors import ChipsimError

if TYPE_CHECKING:
    from chipsim.explore.store import Stored


def dashboard(
    results: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RESULT]...", help="Saved results to open in the explorer."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="0: a free one.", min=0, max=65535)
    ] = 8050,
    expose: Annotated[
        bool, typer.Option("--expose", help="Listen for other machines too; no password.")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Live pictures in a browser: cuts, roofline, chip, cluster, explorer, validation."""
    try:
        from chipsim.present.dashboard import serve
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("dash", "flask", "werkzeug"):
            raise
        raise ChipsimError("the dashboard needs dash: pip install 'chipsim[dashboard]'") from None

    serve.address(host, expose=expose)
    given = _opened(results or [])
    bound = serve.server(given, host, port, expose=expose)
    url = f"http://{_shown(host)}:{bound.server_port}/"
    if as_json:
        from chipsim.present.dashboard.app import PAGES

        rows = [{"page": page.NAME, "url": url + page.PATH.lstrip("/")} for page in PAGES]
        emit({"url": url, "exposed": expose, "results": list(given), "rows": rows})
    else:
        typer.echo(f"{url}  (Ctrl-C ends it)")
    if expose:
        remark(serve.EXPOSED)
    serve.warmed()
    if show:
        import webbrowser

        webbrowser.open(url)
    bound.serve_forever()


def _shown(host: str) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _opened(results: list[str]) -> dict[str, Stored]:
    """Results by file name; of the same names, by path."""
    from chipsim.explore.opened import open_result

    names = [Path(each).name for each in results]
    return {
        each if names.count(name) > 1 else name: open_result(each)
        for each, name in zip(results, names, strict=True)
    }
