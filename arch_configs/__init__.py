"""Floor 0: the YAML library, and finding a file in it by name or path.

Knows folders and names, not what a chip or a model is.
"""

from chipsim.arch_configs.find import load, locate, names
from chipsim.arch_configs.notes import notes

__all__ = ["load", "locate", "names", "notes"]
