"""Selections along an axis."""

import math
from typing import NamedTuple

import numpy as np

from . import _native
from ._arrays import as_array, count, like, native, on_device, place


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
    array : numpy array or any object with ``__dlpack__``
        float16, float32, float64, int32, uint32 or int64; bool and integers of 8 and 16 bits are
        selected as int32. An array on a CUDA device, also bfloat16, is selected there.
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
        indices are int64. On a CUDA device: arrays of its library there.
    """
    array, dim, k, (shape, split) = _request(array, dim, k)
    device, returned = place(device, array), like(array)
    small = _small(array)
    array, dtype = native(array, None if small is None else np.int32)
    shape = shape[:dim] + (k,) + shape[dim + 1 :]
    found = _native.topk(array, dtype, split, shape, k, bool(largest), bool(sorted), device)
    values, indices = map(returned, found)
    if small is not None:
        values = values.astype(small.newbyteorder("="))
    return TopkResult(values, indices)


def topk_mask(array, k, *, dim=-1, largest=True, device="auto"):
    """Returns the array with all but the k greatest or least elements along an axis set to 0.

    Selects as ``topk``, from float16, float32 or float64.
    """
    array, _, k, (shape, split) = _request(array, dim, k)
    device, returned = place(device, array), like(array)
    array, dtype = native(array)
    return returned(_native.topk_mask(array, dtype, split, shape, k, bool(largest), device))


def _request(array, dim, k):
    """Checks a request; returns the shape, also with the axis between all others."""
    array = as_array(array)
    k = count("k", k)
    shape = tuple(array.shape)
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


def _small(array):
    """Returns the dtype of integers that are selected as int32, or None."""
    if on_device(array) or array.dtype.kind not in "biu" or array.dtype.itemsize >= 4:
        return None
    return array.dtype
