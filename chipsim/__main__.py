"""``python -m chipsim``."""

from __future__ import annotations

from chipsim.cli import main

if __name__ == "__main__":
    main()
