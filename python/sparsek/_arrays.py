"""Conversion of arguments to what the native half takes."""

import operator
import sys

import numpy as np
import scipy.sparse

from . import _native

# Share of nonzero elements from which dense rows are searched as they are.
LEAST_DENSITY = 0.25


# DLPack's kind of CUDA devices, and the dtype that the native half takes for their arrays.
_CUDA = 2
EXCHANGED = "dlpack"
# Where `from_dlpack` is, if not where arrays are defined.
_LIBRARIES = {"jaxlib": "jax.numpy"}


def on_device(x):
    """Returns whether an array of another library lies in the memory of a CUDA device."""
    return _device_number(x) is not None


def _device_number(x):
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    kind, number = x.__dlpack_device__()
    return int(number) if int(kind) == _CUDA else None


def place(device, *arrays):
    """Returns the device of a request: where its arrays lie, if on a device."""
    device = str(device)
    found = {_device_number(x) for x in arrays if x is not None}
    if found <= {None}:
        return device
    if len(found) > 1:
        raise ValueError("the arrays are not on one device")
    name = f"cuda:{found.pop()}"
    if device not in ("auto", name) and (device, name) != ("cuda", "cuda:0"):
        raise ValueError(f"the array is on {name}, and device is {device!r}")
    if not _native.has_cuda():
        raise RuntimeError(f"the array is on {name}: this build of sparsek lacks the feature cuda")
    return name


def like(x):
    """Returns what turns results into arrays of the library of ``x``.

    A library without ``from_dlpack`` gets objects with ``__dlpack__``.
    """
    if not on_device(x):
        return np.asarray
    for kind in type(x).__mro__:
        name = kind.__module__.partition(".")[0]
        library = sys.modules.get(_LIBRARIES.get(name, name))
        if hasattr(library, "from_dlpack"):
            return library.from_dlpack
    return lambda result: result


def as_array(x):
    """Returns a numpy array. Tensors of other libraries arrive by DLPack, without a copy.

    Arrays on a CUDA device stay there.
    """
    if isinstance(x, np.ndarray) or on_device(x):
        return x
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"the array is not in the memory of the CPU: {error}") from error
    return np.asarray(x)


def native(x, dtype=None):
    """Returns a contiguous array in this machine's byte order, and its dtype's name."""
    if on_device(x):
        return x, EXCHANGED
    dtype = np.dtype(dtype or x.dtype).newbyteorder("=")
    x = np.ascontiguousarray(x, dtype=dtype)
    return (x.view(np.uint16) if dtype == np.float16 else x), dtype.name


def count(name, value):
    """Returns a nonnegative integer."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; an integer is needed")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; an integer is needed") from None
    if number < 0:
        raise ValueError(f"{name} is {number}; at least 0 is needed")
    return number


def float_dtype(*arrays):
    """Returns float32 if every array has at most that precision, else float64.

    Arrays on a CUDA device keep their precision.
    """
    arrays = [x for x in arrays if not on_device(x)]
    dtype = np.result_type(*(x.dtype for x in arrays), np.float32)
    if dtype.kind == "c":
        raise TypeError("complex numbers are not supported")
    return np.float32 if dtype == np.float32 else np.float64


def as_rows(x):
    """Returns a two-dimensional array, or a sparse matrix in CSR format."""
    if scipy.sparse.issparse(x):
        x = scipy.sparse.csr_array(x)
    else:
        x = as_array(x)
    if x.ndim != 2:
        raise ValueError(f"the array has shape {tuple(x.shape)}; rows of columns are needed")
    if on_device(x):
        return x
    if x.dtype.kind not in "bfiu":
        raise TypeError(f"dtype {x.dtype} is not supported; real numbers are needed")
    return x


def stays_dense(x, metric, device):
    """Returns whether a search by a metric takes rows as they are, dense."""
    if on_device(x):
        return True
    if scipy.sparse.issparse(x) or not _native.searches_dense(metric, device):
        return False
    return np.count_nonzero(x) >= LEAST_DENSITY * x.size


def as_matrix(x, dtype, device, dense=False):
    """Copies rows to a device, dense arrays as they are if ``dense``, else compressed."""
    if not scipy.sparse.issparse(x):
        values, name = native(x, dtype)
        convert = _native.Matrix.from_dense if dense or on_device(x) else _native.Matrix.compress
        return convert(tuple(x.shape), values, name, device)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    for what, found in (("rows", x.shape[0]), ("columns", x.shape[1]), ("entries", x.nnz)):
        if found > _native.MAX_ENTRIES:
            limit = _native.MAX_ENTRIES
            raise ValueError(f"{what}: {found} exceed the limit of {limit}")
    # CSR arrays may have spare room behind the last entry.
    values, name = native(x.data[: x.nnz], dtype)
    indptr = native(x.indptr, np.uint32)[0]
    indices = native(x.indices[: x.nnz], np.uint32)[0]
    return _native.Matrix.from_csr(x.shape, indptr, indices, values, name, device)
