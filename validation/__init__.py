"""Reference figures, and our estimates beside them."""

from __future__ import annotations

from chipsim.validation.suites import SUITES, ValidationResult, validate

__all__ = ["SUITES", "ValidationResult", "validate"]
