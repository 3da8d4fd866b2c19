"""The app behind an address: bound to this machine unless one says otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from chipsim.errors import ChipsimError
from chipsim.present.dashboard import page_cuts
from chipsim.present.dashboard.app import make_app
from chipsim.present.dashboard.guard import is_loopback
from chipsim.present.dashboard.state import defaults

if TYPE_CHECKING:
    from chipsim.explore.store import Stored

EXPOSED = (
    "anyone who reaches this machine can use its processor through the dashboard and open the "
    "results it was started with; there is no password"
)
"""What binding to more than this machine means."""


class Quiet(WSGIRequestHandler):
    """No line for each request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing."""


def address(host: str, *, expose: bool) -> None:
    """Check where to bind.

    Raises
    ------
    ChipsimError
        Elsewhere than this machine, without ``expose``.
    """
    if not is_loopback(host) and not expose:
        raise ChipsimError(f"--host {host}: {EXPOSED}; --expose if that is meant")


def server(
    given: Mapping[str, Stored], host: str = "127.0.0.1", port: int = 0, *, expose: bool = False
) -> BaseWSGIServer:
    """A server that is bound and waits to be told ``serve_forever``.

    Parameters
    ----------
    port : int
        0: one that is free.

    Raises
    ------
    ChipsimError
        A port that is taken, or an address that needs ``expose``.
    """
    address(host, expose=expose)
    app = make_app(given, loopback=is_loopback(host))
    try:
        return make_server(host, port, app.server, threaded=True, request_handler=Quiet)
    except (OSError, SystemExit) as error:
        told = getattr(error, "strerror", None) or "it is taken"
        raise ChipsimError(f"--port {port}: {told}; give another, or 0 for a free one") from None


def warmed(then: Callable[[], None] | None = None) -> threading.Thread:
    """Load the kernels while the browser starts, so that the first picture does not wait."""

    def warm() -> None:
        state = defaults(page_cuts.FIELDS)
        parts = {name: state[name] for name in page_cuts.SLIDERS}
        page_cuts.answer(state, parts, state["axis"])
        if then is not None:
            then()

    thread = threading.Thread(target=warm, daemon=True)
    thread.start()
    return thread
