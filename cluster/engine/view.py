"""One pointer for all arrays of a state, so that kernels pass it to each other at no cost.

Numba hands a tuple of arrays to a function as seven numbers an array: with thirty arrays
and a hundred small functions, compiling takes minutes. Here the arrays' addresses and
shapes stand in a table, kernels pass the table's address, and ``S.ranks`` reads it. The
table does not change while a kernel runs, and LLVM is told so: what it read once it keeps.

What ``S.ranks`` gives is no array but `Cells`: an address and a shape, whose places are
counted from the start only. An array would look at the sign of every place first. Under
``NUMBA_BOUNDSCHECK=1`` a place outside is an ``IndexError``, as it is of numba's arrays.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba.core import cgutils, config, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from chipsim.errors import InternalError

Ints = np.ndarray[Any, np.dtype[np.int64]]

PER_FIELD = 5
"""Numbers of a field in the table: address, and up to four sizes."""


class ViewType(types.Type):
    """The type of ``S``; its fields are cells or arrays of known kind, or views in turn."""

    def __init__(self, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = dict(fields)
        self.places = {name: place for place, (name, _) in enumerate(fields)}
        # The name is in every symbol that is compiled: a checksum, not the whole list.
        known = "".join(f"{name}{kind}" for name, kind in fields)
        super().__init__(name=f"View{_checksum(known)}")


class Cells(types.Type):
    """The type of a contiguous array's cells: numbers or records."""

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"Cells{ndim}{_checksum(str(dtype))}")

    def at(self, place: types.Type) -> types.Type | None:
        """What lies at a place, a number or one for each axis."""
        if isinstance(place, types.Integer):
            return self.dtype if self.ndim == 1 else Cells(self.dtype, self.ndim - 1)
        full = isinstance(place, types.BaseTuple) and len(place) == self.ndim
        return self.dtype if full else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


register_model(ViewType)(models.OpaqueModel)


@register_model(Cells)
class _CellsModel(models.StructModel):
    def __init__(self, manager: Any, kind: Cells) -> None:
        pointer, shape = types.CPointer(kind.dtype), types.UniTuple(types.intp, kind.ndim)
        super().__init__(manager, kind, [("data", pointer), ("shape", shape)])


# ------------------------------------------------------------------ fields of a view


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
    """Field ``name`` of the table, without an owner: Python keeps it alive."""
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
    if isinstance(kind, Cells):
        return _cells(context, builder, kind, read[0], read[1:])
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


def cells_type(dtype: Any, ndim: int) -> Cells:
    """The type of its cells."""
    return Cells(from_dtype(np.dtype(dtype)), ndim)


# ------------------------------------------------------------------ cells


@infer_getattr
class _Shape(AttributeTemplate):
    key = Cells

    def resolve_shape(self, cells: Cells) -> types.Type:
        return types.UniTuple(types.intp, cells.ndim)


@lower_getattr(Cells, "shape")
def _shape(context: Any, builder: Any, kind: Cells, cells: Any) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value=cells).shape


@infer_global(operator.getitem)
class _Get(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002 - numba's interface
        cells, place = args
        found = cells.at(place) if isinstance(cells, Cells) else None
        return None if found is None else signature(found, cells, place)


@infer_global(operator.setitem)
class _Set(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002 - numba's interface
        cells, place, _ = args
        known = isinstance(cells, Cells) and cells.at(place) == cells.dtype
        return signature(types.none, cells, place, cells.dtype) if known else None


@lower_builtin(operator.getitem, Cells, types.Integer)
@lower_builtin(operator.getitem, Cells, types.BaseTuple)
def _get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    pointer, rest = _find(context, builder, signature, args)
    if rest:
        return _cells(context, builder, signature.return_type, pointer, rest)
    return context.unpack_value(builder, kind.dtype, pointer)


@lower_builtin(operator.setitem, Cells, types.Integer, types.Any)
@lower_builtin(operator.setitem, Cells, types.BaseTuple, types.Any)
def _set(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    pointer, _ = _find(context, builder, signature, args)
    context.pack_value(builder, signature.args[0].dtype, args[2], pointer)
    return context.get_dummy_value()


def _find(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to a place, and the sizes of the axes that the place leaves open."""
    kind, place = signature.args[:2]
    cells = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    shape = cgutils.unpack_tuple(builder, cells.shape, kind.ndim)
    whole = isinstance(place, types.BaseTuple)
    places = cgutils.unpack_tuple(builder, args[1], len(place)) if whole else [args[1]]
    kinds = place.types if whole else [place]
    offset = context.get_constant(types.intp, 0)
    for axis, size in enumerate(shape):
        offset = builder.mul(offset, size)
        if axis < len(places):
            number = context.cast(builder, places[axis], kinds[axis], types.intp)
            if config.BOUNDSCHECK:  # type: ignore[attr-defined]
                outside = builder.icmp_unsigned(">=", number, size)
                with builder.if_then(outside, likely=False):
                    told = (f"no such place on axis {axis} of {kind.dtype}"[:80],)
                    context.call_conv.return_user_exc(builder, IndexError, told)
            offset = builder.add(offset, number)
    return cgutils.gep_inbounds(builder, cells.data, offset), shape[len(places) :]


def _cells(context: Any, builder: Any, kind: Cells, data: Any, shape: Any) -> Any:
    cells = cgutils.create_struct_proxy(kind)(context, builder)
    if not isinstance(data.type, type(cells.data.type)):
        data = builder.inttoptr(data, cells.data.type)
    cells.data = data
    cells.shape = context.make_tuple(builder, types.UniTuple(types.intp, kind.ndim), shape)
    return cells._getvalue()  # noqa: SLF001 - numba's own way


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
