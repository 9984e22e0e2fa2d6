"""Selections beside a stable sort."""

import numpy as np
import pytest

import sparsek

FLOATS = [np.float16, np.float32, np.float64]
SMALL = [np.bool_, np.int8, np.uint8, np.int16, np.uint16]
DTYPES = [*FLOATS, np.int32, np.uint32, np.int64, *SMALL]


def expected(x, k, dim, largest, sort):
    """Selects by value, then index."""
    rows = np.moveaxis(x, dim, -1)
    # NaN is greatest.
    keys = np.where(np.isnan(rows), np.inf, rows) if rows.dtype.kind == "f" else rows
    ranks = np.unique(keys, return_inverse=True)[1].reshape(rows.shape)
    if rows.dtype.kind == "f":
        ranks = ranks + np.isnan(rows)
    order = np.argsort(-ranks if largest else ranks, axis=-1, kind="stable")[..., :k]
    if not sort:
        order = np.sort(order, axis=-1)
    values = np.take_along_axis(rows, order, axis=-1)
    return np.moveaxis(values, -1, dim), np.moveaxis(order, -1, dim)


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, largest, sort):
    generator = np.random.default_rng(1)
    x = generator.integers(0, 50, (9, 33)).astype(dtype)
    for k in (0, 1, 5, 33):
        values, indices = sparsek.topk(x, k, largest=largest, sorted=sort, device="cpu")
        wanted = expected(x, k, -1, largest, sort)
        assert values.dtype == dtype and indices.dtype == np.int64
        np.testing.assert_array_equal(values, wanted[0])
        np.testing.assert_array_equal(indices, wanted[1])


@pytest.mark.parametrize("seed", range(200))
def test_shapes(seed):
    generator = np.random.default_rng(seed)
    shape = tuple(int(size) for size in generator.integers(1, 9, generator.integers(1, 5)))
    dim = int(generator.integers(-len(shape), len(shape)))
    k = int(generator.integers(0, shape[dim] + 1))
    dtype = DTYPES[seed % len(DTYPES)]
    x = generator.integers(0, 6, shape).astype(dtype)
    if seed % 3 == 0:
        x = np.asfortranarray(x)
    largest, sort = bool(seed & 1), bool(seed & 2)
    values, indices = sparsek.topk(x, k, dim=dim, largest=largest, sorted=sort, device="cpu")
    wanted = expected(x, k, dim, largest, sort)
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(indices, wanted[1])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype, largest):
    x = np.array([[1, np.nan, np.inf, -np.inf, 0, -0.0, np.nan, 2]], dtype=dtype)
    for k in range(9):
        values, indices = sparsek.topk(x, k, largest=largest, device="cpu")
        wanted = expected(x, k, -1, largest, True)
        np.testing.assert_array_equal(indices, wanted[1])
        np.testing.assert_array_equal(values, wanted[0])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_masks(dtype, dim, largest):
    x = np.random.default_rng(2).normal(size=(6, 7, 5)).astype(dtype)
    kept = sparsek.topk_mask(x, 3, dim=dim, largest=largest, device="cpu")
    _, indices = expected(x, 3, dim, largest, False)
    mask = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(mask, indices, True, axis=dim)
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept, np.where(mask, x, 0))


def test_a_long_vector():
    x = np.random.default_rng(3).permutation(1 << 18).astype(np.float32)
    values, indices = sparsek.topk(x, 100, device="cpu")
    np.testing.assert_array_equal(values, np.arange((1 << 18) - 1, (1 << 18) - 101, -1))
    np.testing.assert_array_equal(x[indices], values)


def test_names_and_memory():
    result = sparsek.topk([3.0, 1.0, 2.0], 2, device="cpu")
    assert result.values.tolist() == [3, 2] and result.indices.tolist() == [0, 2]
    # The result owns its memory and may be written.
    values = result.values
    del result
    values[0] = 7
    assert values.tolist() == [7, 2]


class Exchanged:
    """An array that only DLPack reads, as tensors of other libraries."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    x = np.random.default_rng(4).normal(size=(5, 9))
    values, indices = sparsek.topk(Exchanged(x), 3, device="cpu")
    np.testing.assert_array_equal(values, expected(x, 3, -1, True, True)[0])
    np.testing.assert_array_equal(np.from_dlpack(indices), indices)
