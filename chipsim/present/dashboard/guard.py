"""Who may ask: requests of this page on this machine, unless one has opened it to others."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Response, abort, request

if TYPE_CHECKING:
    from flask import Flask

MOST_REQUEST = 192 * 2**20
"""Bytes of one request: two files of `chipsim.explore.opened.MOST_BYTES` as base64."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self' data: blob:; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'",
}
"""Of every answer. plotly compiles its WebGL code from text, hence ``unsafe-eval``; nothing
is ever fetched from elsewhere."""


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guard(server: Flask, *, loopback: bool) -> None:
    """Refuse what other sites send through the reader's browser, and what is too large.

    Parameters
    ----------
    loopback : bool
        Bound to this machine alone: a request by another name than that of this machine
        (DNS rebinding) is refused too.
    """
    server.config["MAX_CONTENT_LENGTH"] = MOST_REQUEST

    @server.before_request
    def _ours() -> None:
        named = urlsplit(f"//{request.host}").hostname or ""
        if loopback and not is_loopback(named):
            abort(403, "chipsim dashboard answers to this machine only")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            abort(403, "chipsim dashboard answers to its own page only")

    @server.after_request
    def _headers(answer: Response) -> Response:
        answer.headers.update(HEADERS)
        return answer
