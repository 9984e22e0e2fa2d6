"""Distances beside scipy in float64."""

import numpy as np
import pytest
import scipy.sparse
from oracle import (
    FORMATS,
    METRICS,
    SHARES,
    as_format,
    assert_close,
    cleaned,
    distances,
    random_rows,
    real_matrices,
)

import sparsek
from sparsek import _native

REAL = real_matrices()


def test_every_metric_is_compared():
    names, _ = _native.metrics()
    assert sorted(names) == METRICS


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("metric", METRICS)
def test_random_matrices(metric, name):
    generator = np.random.default_rng(1)
    for density in (0.02, 0.2, 0.9):
        x = cleaned(metric, random_rows(generator, 37, 61, density))
        y = cleaned(metric, random_rows(generator, 23, 61, density))
        if metric in SHARES or metric in ("cosine", "correlation"):
            # Rows without an entry are those of test_empty_rows.
            x[:, 3] = y[:, 5] = 1
            x[:, 7], y[:, 7] = 2, 1
        if metric == "jensen-shannon":
            x, y = x / x.sum(axis=1, keepdims=True), y / y.sum(axis=1, keepdims=True)
        found = sparsek.pairwise_distances(
            as_format(x, name), as_format(y, name), metric, p=3, device="cpu"
        )
        assert found.dtype == np.float64
        assert_close(found, distances(metric, x, y), 1e-8)


@pytest.mark.parametrize("data", sorted(REAL))
@pytest.mark.parametrize("metric", METRICS)
def test_real_matrices(metric, data):
    x = REAL[data][:150]
    found = sparsek.pairwise_distances(x, metric=metric, p=3, device="cpu")
    expected = distances(metric, x, x)
    # The distance of a row to itself is that of equal rows, which scipy evaluates.
    if metric in ("correlation", "cosine", "hellinger", "jensen-shannon"):
        np.testing.assert_allclose(np.diag(found), 0, atol=1e-7)
        np.testing.assert_allclose(np.diag(expected), 0, atol=1e-7)
        np.fill_diagonal(found, 0)
        np.fill_diagonal(expected, 0)
    # 1 - cos of nearly parallel rows cancels in scipy too.
    assert_close(found, expected, 1e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_float32(metric):
    generator = np.random.default_rng(2)
    x = cleaned(metric, random_rows(generator, 30, 40, 0.5)).astype(np.float32)
    x[:, 3] = 1
    y = x[::2] + np.float32(0.25) * (x[::2] != 0)
    found = sparsek.pairwise_distances(x, y, metric, p=3, device="cpu")
    assert found.dtype == np.float32
    assert_close(found, distances(metric, x, y), 2e-3 if metric == "jensen-shannon" else 1e-4)


@pytest.mark.parametrize("metric", sorted(set(METRICS) - set(SHARES) - {"correlation"}))
def test_empty_rows(metric):
    x = np.zeros((3, 5))
    x[1, 2] = 2
    y = np.zeros((2, 5))
    y[0, 4] = -1
    found = sparsek.pairwise_distances(x, y, metric, p=3, device="cpu")
    assert_close(found, distances(metric, x, y))


@pytest.mark.parametrize("seed", range(200))
def test_shapes_and_formats(seed):
    generator = np.random.default_rng(seed)
    rows, others, cols = (int(size) for size in generator.integers(1, 40, 3))
    density = float(generator.choice([0, 0.05, 0.3, 1]))
    metric = METRICS[seed % len(METRICS)]
    x = cleaned(metric, random_rows(generator, rows, cols, density, whole=True))
    y = cleaned(metric, random_rows(generator, others, cols, density, whole=True))
    if metric in SHARES or metric in ("cosine", "correlation"):
        x, y = (np.hstack([a, np.full((len(a), 2), [1.0, 3.0])]) for a in (x, y))
    if metric == "jensen-shannon":
        x, y = x / x.sum(axis=1, keepdims=True), y / y.sum(axis=1, keepdims=True)
    formats = generator.choice(FORMATS, 2)
    x_of, y_of = (as_format(a, name) for a, name in zip((x, y), formats))
    found = sparsek.pairwise_distances(x_of, y_of, metric, p=3, device="cpu")
    assert_close(found, distances(metric, x, y), 1e-7)


def test_a_matrix_with_itself():
    x = random_rows(np.random.default_rng(3), 50, 30, 0.3)
    both = sparsek.pairwise_distances(x, x, "manhattan", device="cpu")
    np.testing.assert_array_equal(sparsek.pairwise_distances(x, metric="l1", device="cpu"), both)


@pytest.mark.parametrize(
    "metric",
    ["braycurtis", "chebyshev", "cosine", "euclidean", "manhattan", "minkowski", "sqeuclidean"],
)
def test_weights(metric):
    generator = np.random.default_rng(4)
    x, y = random_rows(generator, 20, 15, 0.6), random_rows(generator, 10, 15, 0.6)
    x[:, 0] = y[:, 0] = 1
    w = generator.random(15) + 0.1
    found = sparsek.pairwise_distances(x, y, metric, w=w, p=3, device="cpu")
    assert_close(found, distances(metric, x, y, w=w))


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, np.inf])
def test_exponents(p):
    x = random_rows(np.random.default_rng(5), 20, 15, 0.6)
    found = sparsek.pairwise_distances(x, metric="minkowski", p=p, device="cpu")
    assert_close(found, distances("minkowski", x, x, p=p))


@pytest.mark.parametrize("name", FORMATS)
def test_seuclidean(name):
    generator = np.random.default_rng(6)
    x, y = random_rows(generator, 20, 15, 0.6), random_rows(generator, 10, 15, 0.6)
    from scipy.spatial.distance import cdist

    arrays = as_format(x, name), as_format(y, name)
    found = sparsek.pairwise_distances(*arrays, "seuclidean", device="cpu")
    assert_close(found, cdist(x, y, "seuclidean"))
    variances = generator.random(15) + 0.5
    found = sparsek.pairwise_distances(*arrays, "seuclidean", V=variances, device="cpu")
    assert_close(found, cdist(x, y, "seuclidean", V=variances))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "float16", ">f8"])
def test_dtypes(dtype):
    x = np.random.default_rng(7).integers(0, 2, (12, 9)).astype(dtype)
    found = sparsek.pairwise_distances(x, metric="manhattan", device="cpu")
    assert_close(found, distances("manhattan", x, x))


def test_strides_and_order():
    x = random_rows(np.random.default_rng(8), 40, 30, 0.5)
    for view in (np.asfortranarray(x), x[::3, ::-2], x.T):
        found = sparsek.pairwise_distances(view, metric="manhattan", device="cpu")
        assert_close(found, distances("manhattan", view, view))
    x.flags.writeable = False
    assert sparsek.pairwise_distances(x, device="cpu").flags.writeable


def test_duplicates_and_explicit_zeros():
    data, rows, cols = [1.0, 2, 0, 4], [0, 0, 1, 1], [1, 1, 0, 2]
    x = scipy.sparse.coo_array((data, (rows, cols)), shape=(2, 3))
    unsorted = scipy.sparse.csr_array(([3.0, 1.0], [2, 0], [0, 2]), shape=(1, 3))
    before = unsorted.indices.copy()
    found = sparsek.pairwise_distances(x, unsorted, "manhattan", device="cpu")
    assert_close(found, distances("manhattan", x.toarray(), unsorted.toarray()))
    np.testing.assert_array_equal(unsorted.indices, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_goes_there_and_back(dtype):
    x = scipy.sparse.random_array((80, 50), density=0.1, format="csr", rng=1, dtype=dtype)
    matrix = _native.Matrix.from_csr(
        x.shape,
        x.indptr.astype(np.uint32),
        x.indices.astype(np.uint32),
        x.data,
        x.dtype.name,
        "cpu",
    )
    indptr, indices, values = map(np.asarray, matrix.to_csr())
    back = scipy.sparse.csr_array((values, indices, indptr), shape=matrix.shape)
    assert back.dtype == x.dtype and matrix.nnz == x.nnz
    assert (back != x).nnz == 0
