"""Configurations as their authors publish them, cut to the keys that shape the model."""

from __future__ import annotations

from tests.importers.published.dense import DENSE
from tests.importers.published.experts import EXPERTS
from tests.importers.published.gemma import GEMMA
from tests.importers.published.hybrid import HYBRID
from tests.importers.published.llama import LLAMA
from tests.importers.published.qwen import QWEN
from tests.importers.published.sizes import SIZES
from tests.importers.published.states import STATES
from tests.importers.published.uncommon import UNCOMMON

PUBLISHED = LLAMA | QWEN | GEMMA | EXPERTS | DENSE | HYBRID | STATES | UNCOMMON | SIZES
