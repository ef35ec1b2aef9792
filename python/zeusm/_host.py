"""Copies between arrays and NumPy, for any strides on both sides.

The host accesses host and shared memory in place. Device memory is copied to a destination of the same order in memory
directly, and to others through a staging buffer, from which NumPy reorders the elements.
"""

from typing import Any

import numpy

#: The most bytes of a host array that are staged at once in an assignment.
STAGING = 4 << 20


def in_place(array: Any) -> Any:
    """The NumPy array over the memory of an array that the host can access."""
    shown = array._plain()
    view = numpy.asarray(shown)
    return view if shown is array else view.view(array.dtype)


def plain(array: Any) -> Any:
    """The NumPy array, or one of integers where its elements are of a type of another package, for which it exports no buffer."""
    return array.view(f"u{array.itemsize}") if array.dtype.isbuiltin == 2 else array


def view_or_copy(array: Any, dtype: Any, copy: bool | None) -> Any:
    """The array that the host can access as one of NumPy: a view, unless `dtype` or `copy` needs a copy."""
    view = in_place(array)
    wanted = view.dtype if dtype is None else numpy.dtype(dtype)
    if copy is False and wanted != view.dtype:
        raise ValueError(f"an array of {view.dtype} cannot be one of {wanted} without a copy")
    return view.astype(wanted, copy=copy is True)


def shown(array: Any) -> str:
    """The elements as NumPy shows them; of a long array, what is not shown is not copied."""
    options = numpy.get_printoptions()
    threshold, count = options["threshold"], options["edgeitems"]
    if array.size <= threshold:
        elements = array.copy_to_host()
    else:
        elements, threshold = ends(array, 0, count), 0
    return numpy.array2string(elements, separator=", ", threshold=threshold)


def ends(array: Any, axis: int, count: int) -> Any:
    """Along each axis from `axis` on the first elements and the last ones, with one between them for all that are left out."""
    if axis == array.ndim:
        return array.copy_to_host()
    if array.shape[axis] <= 2 * count + 1:
        return ends(array, axis + 1, count)
    before = (slice(None),) * axis
    parts = [array[(*before, part)] for part in (slice(count + 1), slice(-count, None))]
    return numpy.concatenate([ends(part, axis + 1, count) for part in parts], axis)


def read(array: Any, destination: Any) -> Any:
    """Copy the array to a new NumPy array, or to `destination`, and return that."""
    to = None if destination is None else writable(destination, array)
    if array.usm_type == "device":
        elements, is_result = read_staged(array, to)
        if is_result:
            return elements if destination is None else destination
    else:
        elements = in_place(array)
    if to is None:
        return elements.copy("K")
    copy_elements(to, elements)
    return destination


def read_staged(array: Any, to: Any = None) -> tuple[Any, bool]:
    """Copy the array to `to`, or else to a new NumPy array, if that has the elements in the order of the array's memory, without
    gaps; else to a staging buffer. Return the elements, and whether they are where they should be."""
    size, offset, strides, orders = array._staging(False)
    if to is None and orders:
        to = numpy.empty(array.shape, array.dtype, orders[0])
    if to is not None and (data := if_packed(to, orders)) is not None:
        array._gather(plain(data))
        return to, True
    data, view = staging(array, size, offset, strides)
    array._gather(data)
    return view, False


def write(array: Any, source: Any) -> None:
    """Copy `source`, which NumPy converts to an array, to the array."""
    source = of_same(numpy.asarray(source), array, "source")
    array._check_target()
    if array.size:
        copy_arranged(array, arranged(array, source))


def arranged(array: Any, source: Any) -> Any:
    """The elements of a NumPy array as `copy_arranged` takes them: where the device writes the array, they are in the order of
    its memory, without gaps."""
    if array.usm_type != "device":
        return source
    size, offset, strides, orders = array._staging(True)
    if (data := if_packed(source, orders)) is not None:
        return data
    data, view = staging(array, size, offset, strides)
    copy_elements(view, source)
    return data


def copy_arranged(array: Any, source: Any) -> None:
    if array.usm_type == "device":
        array._scatter(plain(source))
    else:
        copy_elements(in_place(array), source)


def copy_through(source: Any, target: Any) -> bool:
    """Copy the elements between arrays of the same shape and type in USM, which may overlap, through host memory. If there is not
    enough of that, copy nothing and return `False`."""
    try:
        elements = arranged(target, read_staged(source)[0])
    except MemoryError:
        return False
    copy_arranged(target, elements)
    return True


def assign(target: Any, value: Any) -> None:
    """Copy what NumPy converts and broadcasts to the target."""
    if target.usm_type != "device":
        in_place(target)[...] = value
    elif target.nbytes <= STAGING:
        assign_staged(target, value)
    else:
        assign_staged(target, broadcast(target, value))


def broadcast(target: Any, value: Any) -> Any:
    """A NumPy array of the target's shape with the elements of `value`, which are not repeated in memory."""
    source = value
    if not isinstance(value, numpy.ndarray):
        # NumPy checks the range of Python's numbers, and takes a tuple for a record, only if it knows the type that they are for.
        source = numpy.asarray(value, target.dtype)
    while source.ndim > target.ndim and source.shape[0] == 1:
        source = source[0]  # An assignment ignores such dimensions, and `broadcast_to` does not.
    return numpy.broadcast_to(source, target.shape)


def assign_staged(target: Any, source: Any) -> None:
    """Assign in parts of at most `STAGING` bytes. A source of several parts is an array of the target's shape."""
    if target.nbytes <= STAGING or target.ndim == 0:
        staged = numpy.empty(target.shape, target.dtype)
        staged[...] = source
        write(target, staged)
        return
    rows = target.shape[0]
    parts = [0] if rows == 1 else [slice(0, rows // 2), slice(rows // 2, rows)]
    for part in parts:
        assign_staged(target[part], source[part])


def staging(array: Any, size: int, offset: int, strides: tuple[int, ...]) -> tuple[Any, Any]:
    """A buffer of `size` bytes, and an array over it of the same elements as `array`."""
    data = numpy.empty(size, "u1")
    if not array.size:
        return data, numpy.empty(array.shape, array.dtype)
    return data, numpy.ndarray(array.shape, array.dtype, data, offset, strides)


def if_packed(array: Any, orders: str) -> Any:
    """A C-contiguous view of the NumPy array, if that is contiguous in one of the orders."""
    if "C" in orders and array.flags.c_contiguous:
        return array
    return array.T if "F" in orders and array.flags.f_contiguous else None


def writable(destination: Any, array: Any) -> Any:
    """`destination` as a writable NumPy array."""
    # NumPy cannot read the format of its own records with bytes after the last field.
    is_numpy = isinstance(destination, numpy.ndarray)
    found = numpy.asarray(destination if is_numpy else memoryview(destination))
    found = of_same(found, array, "destination")
    if not found.flags.writeable:
        raise ValueError("the destination is read-only")
    return found


def of_same(found: Any, array: Any, role: str) -> Any:
    """The NumPy array, which must have the shape and the elements of `array`."""
    if found.shape != array.shape:
        raise ValueError(
            f"the {role} has the shape {list(found.shape)}, the array {list(array.shape)}"
        )
    if not array._is_of(found.dtype):
        raise ValueError(
            f"the {role} is of {found.dtype}, the array of {array.dtype}: convert on the host first, for this is a copy of bytes"
        )
    # Fields may have titles, and records a class of their own, which NumPy's copies compare.
    return found if found.dtype.names is None else found.view(array.dtype)


def copy_elements(to: Any, source: Any) -> None:
    """NumPy's copy between arrays of the same shape and type; it releases the GIL.

    Arrays that may overlap are copied through a temporary array: NumPy overwrites elements before it reads them in
    `copyto(a[::2], a[:25])`.
    """
    if numpy.may_share_memory(to, source):
        source = source.copy("K")
    numpy.copyto(to, source, "no")
