"""The base of everything that is read from a file: strict, frozen, errors in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from chipsim.errors import ConfigError


class FieldError(ValueError):
    """A check over several fields of a `Spec`, which names the one to change."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field}: {allowed}")
        self.field, self.value, self.allowed = field, value, allowed


class Spec(BaseModel):
    """A validated description: unknown and missing keys are errors that name the key."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _truth_is_no_number(cls, value: object, read: ValidatorFunctionWrapHandler) -> object:
        """Or ``true`` would be taken for 1."""
        found = read(value)
        if _truth_was_taken(value, found):
            raise ValueError("a number" if isinstance(value, bool) else "numbers")
        return found

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str | Path) -> Self:
        """Validate the content of a file.

        Raises
        ------
        ConfigError
            Names the file, the field's path, the value and what is allowed.
        """
        name = Path(where).name
        try:
            return cls.model_validate(data, context={"file": name})
        except ValidationError as error:
            raise _one_line(cls, error, name) from None

    @classmethod
    def build(cls, where: str, **fields: Any) -> Self:
        """Validate values given in code or on a command line (floats are SI)."""
        try:
            return cls(**fields)
        except ValidationError as error:
            raise _one_line(cls, error, where) from None


def _truth_was_taken(value: object, found: object) -> bool:
    """Whether a truth value, or one in a list or a mapping, became something else."""
    if isinstance(value, bool):
        return found is not value
    if isinstance(value, Mapping) and isinstance(found, Mapping):
        return any(_truth_was_taken(value[key], found[key]) for key in value if key in found)
    if isinstance(value, list | tuple) and isinstance(found, list | tuple):
        return any(map(_truth_was_taken, value, found))
    return False


def _one_line(spec: type[Spec], error: ValidationError, where: str) -> ConfigError:
    errors = error.errors(include_url=False)
    # A key that is missing may be there under a wrong name: that is what to say then.
    misspelt = (one for one in errors if one["type"] == "extra_forbidden")
    first = next(misspelt, errors[0])
    # A tag in angle brackets says which of several forms was read: no part of the file.
    field = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))
    kind, message = first["type"], first["msg"]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, FieldError):
        return ConfigError(where, cause.field, cause.value, cause.allowed)
    if kind == "extra_forbidden":
        keys = ", ".join(_keys(spec, first["loc"][:-1]))
        return ConfigError(where, field, first["input"], f"no such key; there are {keys}")
    if kind == "missing":
        return ConfigError(where, field, None, "the key is required")
    return ConfigError(
        where, field, first["input"], _allowed(kind, message, first.get("ctx", {}))
    )


def _keys(spec: type[Spec], place: tuple[int | str, ...]) -> list[str]:
    """Keys that may stand at a place of a file: of all forms, where several are allowed."""
    forms = {spec}
    for part in place:  # a place in a list, a form's tag, a name of the user's: no field
        inner = (form.model_fields[part] for form in forms if part in form.model_fields)
        forms = {found for field in inner for found in _specs(field.annotation)} or forms
    return sorted({f.alias or n for form in forms for n, f in form.model_fields.items()})


def _specs(annotation: Any) -> Iterator[type[Spec]]:
    """Every `Spec` that a type names."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for part in get_args(annotation):
        yield from _specs(part)


_SHOULD_BE = "Input should be "
_SIGNS = {
    "greater_than_equal": "{ge} or more",
    "greater_than": "above {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "below {lt}",
    "literal_error": "{expected}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
"""What is allowed where a check of pydantic fails, in our words."""


def _allowed(kind: str, message: str, context: Mapping[str, Any]) -> str:
    if kind in _SIGNS:
        return _SIGNS[kind].format(**context)
    return message.removeprefix("Value error, ").removeprefix(_SHOULD_BE)
