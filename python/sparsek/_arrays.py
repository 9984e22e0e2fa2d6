"""Conversion of arguments to what the native half takes."""

import operator

import numpy as np
import scipy.sparse

from . import _native

# Share of nonzero elements from which dense rows are searched as they are.
LEAST_DENSITY = 0.25


def as_array(x):
    """Returns a numpy array. Tensors of other libraries arrive by DLPack, without a copy."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"the array is not in the memory of the CPU: {error}") from error
    return np.asarray(x)


def native(x, dtype=None):
    """Returns a contiguous array in this machine's byte order, and its dtype's name."""
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
    """Returns float32 if every array has at most that precision, else float64."""
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
        raise ValueError(f"the array has shape {x.shape}; rows of columns are needed")
    if x.dtype.kind not in "bfiu":
        raise TypeError(f"dtype {x.dtype} is not supported; real numbers are needed")
    return x


def stays_dense(x, metric, device):
    """Returns whether a search by a metric takes rows as they are, dense."""
    if scipy.sparse.issparse(x) or not _native.searches_dense(metric, device):
        return False
    return np.count_nonzero(x) >= LEAST_DENSITY * x.size


def as_matrix(x, dtype, device, dense=False):
    """Copies rows to a device, dense arrays as they are if ``dense``, else compressed."""
    if not scipy.sparse.issparse(x):
        values, name = native(x, dtype)
        convert = _native.Matrix.from_dense if dense else _native.Matrix.compress
        return convert(x.shape, values, name, device)
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
