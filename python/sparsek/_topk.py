"""Selections along an axis."""

import math
from typing import NamedTuple

import numpy as np

from . import _native
from ._arrays import as_array, count, native


class TopkResult(NamedTuple):
    """Values and indices of a selection."""

    values: np.ndarray
    indices: np.ndarray


def topk(array, k, *, dim=-1, largest=True, sorted=True, device="auto"):
    """Returns the k greatest or least elements along an axis, and their indices.

    Exactly k elements are selected. Ties go to the lowest index. NaN is the greatest value: first
    among the largest, last among the smallest.

    Parameters
    ----------
    array : numpy array or any object with ``__dlpack__`` in the memory of the CPU
        float16, float32, float64, int32, uint32 or int64; bool and integers of 8 and 16 bits are
        selected as int32.
    k : int
    dim : int
        The axis.
    largest : bool
        Whether to select the greatest elements.
    sorted : bool
        Whether to order results by value, best first, then index; else by index.
    device : str

    Returns
    -------
    values, indices
        Arrays of the shape of ``array`` with k elements along ``dim``; values have its dtype,
        indices are int64.
    """
    array, dim, k, (shape, split) = _request(array, dim, k)
    small = array.dtype if array.dtype.kind in "biu" and array.dtype.itemsize < 4 else None
    array, dtype = native(array, None if small is None else np.int32)
    values, indices = _native.topk(
        array, dtype, split, k, bool(largest), bool(sorted), str(device)
    )
    shape = shape[:dim] + (k,) + shape[dim + 1 :]
    values = np.asarray(values).reshape(shape)
    if small is not None:
        values = values.astype(small.newbyteorder("="))
    return TopkResult(values, np.asarray(indices).reshape(shape))


def topk_mask(array, k, *, dim=-1, largest=True, device="auto"):
    """Returns the array with all but the k greatest or least elements along an axis set to 0.

    Selects as ``topk``, from float16, float32 or float64.
    """
    array, _, k, (shape, split) = _request(array, dim, k)
    array, dtype = native(array)
    kept = _native.topk_mask(array, dtype, split, k, bool(largest), str(device))
    return np.asarray(kept).reshape(shape)


def _request(array, dim, k):
    """Checks a request; returns the shape, also with the axis between all others."""
    array = as_array(array)
    k = count("k", k)
    shape = array.shape
    if not -len(shape) <= dim < len(shape):
        raise ValueError(f"dimension {dim} is out of range for an array of shape {shape}")
    dim %= len(shape)
    length = shape[dim]
    if k > length:
        raise ValueError(
            f"k = {k} is greater than the {length} elements along dimension {dim} of shape {shape}"
        )
    split = (math.prod(shape[:dim]), length, math.prod(shape[dim + 1 :]))
    return array, dim, k, (shape, split)
