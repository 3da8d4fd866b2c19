"""One pointer for all arrays of a state, so that kernels pass it to each other at no cost.

Numba hands a tuple of arrays to a function as seven numbers an array: with thirty arrays
and a hundred small functions, compiling takes minutes. Here the arrays' addresses and
shapes stand in a table, kernels pass the table's address, and ``S.ranks`` reads it. The
table does not change while a kernel runs, and LLVM is told so: what it read once it keeps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from chipsim.errors import InternalError

Ints = np.ndarray[Any, np.dtype[np.int64]]

PER_FIELD = 5
"""Numbers of a field in the table: address, and up to four sizes."""


class ViewType(types.Type):
    """The type of ``S``; its fields are arrays of known kind, or views in turn."""

    def __init__(self, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = dict(fields)
        self.places = {name: place for place, (name, _) in enumerate(fields)}
        # The name is in every symbol that is compiled: a checksum, not the whole list.
        known = "".join(f"{name}{kind}" for name, kind in fields)
        super().__init__(name=f"View{hashlib.sha256(known.encode()).hexdigest()[:16]}")


register_model(ViewType)(models.OpaqueModel)


@infer_getattr
class _Attribute(AttributeTemplate):
    key = ViewType

    # numba types what a template leaves out as "not implemented".
    def generic_resolve(  # type: ignore[override]
        self, view: ViewType, name: str
    ) -> types.Type | None:
        return view.fields.get(name)


@lower_getattr_generic(ViewType)
def _read(context: Any, builder: Any, view: ViewType, table: Any, name: str) -> Any:
    """Array ``name`` of the table, without an owner: Python keeps it alive."""
    kind: Any = view.fields[name]
    place = view.places[name] * PER_FIELD
    word = context.get_value_type(types.intp)
    words = builder.bitcast(table, word.as_pointer())
    read = []
    for offset in range(1 + getattr(kind, "ndim", 0)):
        load = builder.load(cgutils.gep_inbounds(builder, words, place + offset))
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        read.append(load)
    if isinstance(kind, ViewType):
        return builder.inttoptr(read[0], context.get_value_type(kind))
    array = make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [word(size)]
    for count in reversed(read[2:]):
        strides.insert(0, builder.mul(strides[0], count))
    populate_array(
        array,
        data=builder.inttoptr(read[0], array.data.type),
        shape=read[1:],
        strides=strides,
        itemsize=word(size),
        meminfo=None,
    )
    return array._getvalue()  # noqa: SLF001 - numba's own way


def array_type(dtype: Any, ndim: int) -> types.Array:
    """The type of a contiguous array."""
    return types.Array(from_dtype(np.dtype(dtype)), ndim, "C")


def view_of(kind: ViewType) -> Any:
    """A kernel's function from a table (an int64 array, see `table_of`) to ``S``."""

    @intrinsic
    def view(context: Any, table: Any) -> Any:  # noqa: ARG001 - numba's interface
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = make_array(signature.args[0])(context, builder, args[0])
            return builder.bitcast(array.data, context.get_value_type(kind))

        return kind(table), generate

    return view


def table_of(arrays: Iterable[np.ndarray[Any, Any]]) -> Ints:
    """Addresses and sizes of arrays, and of tables; they must outlive it."""
    rows = []
    for array in arrays:
        if not array.flags.c_contiguous:
            raise InternalError("an array of the state has gaps")
        row = [array.ctypes.data, *array.shape]
        rows.append(row + [0] * (PER_FIELD - len(row)))
    return np.array(rows, np.int64).ravel()
