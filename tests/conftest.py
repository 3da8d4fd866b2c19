"""How every test runs."""

from __future__ import annotations

from hypothesis import settings

# No deadline: the first example of a kernel may compile it. The same examples each
# time: a failure on one machine is a failure on all.
settings.register_profile("chipsim", deadline=None, derandomize=True)
settings.load_profile("chipsim")
