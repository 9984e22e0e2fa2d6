"""Neighbors beside scipy and scikit-learn in float64."""

import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn.neighbors
from oracle import (
    FORMATS,
    METRICS,
    SHARES,
    as_format,
    assert_close,
    assert_neighbors,
    cleaned,
    distances,
    random_rows,
    real_matrices,
)
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsek.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    NearestNeighbors,
)

REAL = real_matrices()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("metric", METRICS)
def test_random_matrices(metric, name):
    generator = np.random.default_rng(1)
    x = cleaned(metric, random_rows(generator, 60, 40, 0.3))
    y = cleaned(metric, random_rows(generator, 25, 40, 0.3))
    # No row is empty or constant.
    x[:, 0], x[:, 1], y[:, 0], y[:, 1] = 1, 2, 2, 1
    if metric in SHARES:
        x[:] += 0.01
        y[:] += 0.01
    search = NearestNeighbors(n_neighbors=7, metric=metric, p=3, device="cpu")
    search.fit(as_format(x, name))
    expected = distances(metric, y, x)
    found = search.kneighbors(as_format(y, name))
    assert found[0].shape == (25, 7) and found[1].dtype == np.int64
    assert_neighbors(found, expected, largest=metric == "dot", tolerance=1e-7)


@pytest.mark.parametrize("data", sorted(REAL))
@pytest.mark.parametrize("metric", METRICS)
def test_real_matrices(metric, data):
    x = REAL[data][:200]
    search = NearestNeighbors(n_neighbors=9, metric=metric, p=3, device="cpu").fit(x)
    expected = distances(metric, x, x)
    np.fill_diagonal(expected, -np.inf if metric == "dot" else np.nan)
    assert_neighbors(search.kneighbors(), expected, largest=metric == "dot", tolerance=1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_shapes_and_formats(seed):
    generator = np.random.default_rng(1000 + seed)
    rows, queries, cols = (int(size) for size in generator.integers(1, 30, 3))
    x = random_rows(generator, rows, cols, 0.4, whole=True)
    y = random_rows(generator, queries, cols, 0.4, whole=True)
    k = int(generator.integers(1, rows + 1))
    metric = ["manhattan", "sqeuclidean", "hamming", "chebyshev", "jaccard"][seed % 5]
    formats = generator.choice(FORMATS, 2)
    search = NearestNeighbors(n_neighbors=k, metric=metric, device="cpu")
    search.fit(as_format(x, formats[0]))
    found, indices = search.kneighbors(as_format(y, formats[1]))
    expected = distances(metric, y, x)
    # Whole numbers: ties are exact, and go to the lowest row.
    order = np.argsort(np.round(expected, 12), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, order)
    assert_close(found, np.take_along_axis(expected, order, axis=1))


@pytest.mark.parametrize("name", ["csr", "dense"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_as_scikit_learn(metric, name):
    x, _ = load_digits(return_X_y=True)
    rows, queries = as_format(x[:900], name), as_format(x[900:1200], name)
    ours = NearestNeighbors(n_neighbors=12, metric=metric, device="cpu").fit(rows)
    theirs = sklearn.neighbors.NearestNeighbors(n_neighbors=12, metric=metric, algorithm="brute")
    theirs.fit(rows)
    for query, dense in ((None, x[:900]), (queries, x[900:1200])):
        found, expected = ours.kneighbors(query), theirs.kneighbors(query)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)
        # Indices differ where distances of whole numbers tie, so compare by distance.
        every = distances(metric, dense, x[:900])
        if query is None:
            np.fill_diagonal(every, np.nan)
        assert_neighbors(found, every)
        for mode in ("connectivity", "distance"):
            graph, other = (s.kneighbors_graph(query, mode=mode) for s in (ours, theirs))
            assert graph.shape == other.shape and graph.format == "csr"
            np.testing.assert_array_equal(graph.indptr, other.indptr)
            np.testing.assert_allclose(graph.data, other.data, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_radius_as_scikit_learn(metric, ordered):
    x, _ = load_digits(return_X_y=True)
    radius = {"cosine": 0.15, "euclidean": 25.5, "manhattan": 120.5}[metric]
    ours = NearestNeighbors(radius=radius, metric=metric, device="cpu").fit(x[:500])
    theirs = sklearn.neighbors.NearestNeighbors(radius=radius, metric=metric, algorithm="brute")
    theirs.fit(x[:500])
    for query in (None, x[500:600]):
        found = ours.radius_neighbors(query, sort_results=ordered)
        expected = theirs.radius_neighbors(query, sort_results=True)
        for row in range(len(expected[0])):
            assert set(found[1][row]) == set(expected[1][row])
            values = found[0][row] if ordered else np.sort(found[0][row])
            np.testing.assert_allclose(values, expected[0][row], rtol=1e-9, atol=1e-9)
        for mode in ("connectivity", "distance"):
            graph = ours.radius_neighbors_graph(query, mode=mode, sort_results=ordered)
            other = theirs.radius_neighbors_graph(query, mode=mode)
            assert graph.shape == other.shape
            np.testing.assert_allclose(graph.toarray(), other.toarray(), rtol=1e-9, atol=1e-9)


# Searched as they are, by a matrix product.
DENSE = ["correlation", "cosine", "dot", "euclidean", "sqeuclidean"]
# Names of scikit-learn, whose Bray-Curtis is another for negative elements.
THEIRS = {"manhattan": "cityblock", "minkowski": "minkowski"} | {
    name: name for name in ("canberra", "chebyshev", "correlation", "cosine", "euclidean")
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_dense_rows(metric, dtype):
    generator = np.random.default_rng(10)
    x, y = cleaned(metric, generator.normal(size=(500, 17))), generator.normal(size=(70, 17))
    y = cleaned(metric, y)
    x, y = x.astype(dtype), y.astype(dtype)
    if metric == "jensen-shannon":
        # scipy's shares sum to 1 only to rounding.
        x, y = x / x.sum(axis=1, keepdims=True), y / y.sum(axis=1, keepdims=True)
    search = NearestNeighbors(n_neighbors=11, metric=metric, p=3, device="cpu").fit(x)
    assert search._index.is_dense == (metric in DENSE)
    found = search.kneighbors(y)
    assert found[0].dtype == dtype and found[1].dtype == np.int64
    tolerance = 1e-9 if dtype == np.float64 else 2e-5
    if metric in ("hellinger", "jensen-shannon") and dtype == np.float32:
        tolerance = 2e-3
    expected = distances(metric, y, x)
    assert_neighbors(found, expected, largest=metric == "dot", tolerance=tolerance)
    if metric in THEIRS and dtype == np.float64:
        params = {"p": 3} if metric == "minkowski" else {}
        theirs = sklearn.neighbors.NearestNeighbors(
            n_neighbors=11, metric=THEIRS[metric], algorithm="brute", **params
        ).fit(x)
        for query in (y, None):
            ours, other = search.kneighbors(query), theirs.kneighbors(query)
            np.testing.assert_allclose(ours[0], other[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(ours[1], other[1])


@pytest.mark.parametrize("metric", [*DENSE, "manhattan"])
def test_kinds_of_rows_mix(metric):
    generator = np.random.default_rng(11)
    x, y = random_rows(generator, 90, 12, 0.6), random_rows(generator, 30, 12, 0.6)
    x[:, 0], x[:, 1], y[:, 0], y[:, 1] = 1, 2, 2, 1
    search = NearestNeighbors(n_neighbors=6, radius=1.5, metric=metric, device="cpu")
    results = []
    for index in (x, scipy.sparse.csr_array(x)):
        search.fit(index)
        for query in (y, scipy.sparse.csr_array(y)):
            results.append((search.kneighbors(query), search.radius_neighbors_graph(query)))
    expected = distances(metric, y, x)
    for found, graph in results:
        assert_neighbors(found, expected, largest=metric == "dot")
        np.testing.assert_array_equal(graph.toarray(), results[-1][1].toarray())


def test_rows_of_mostly_zeros_are_compressed():
    x = random_rows(np.random.default_rng(12), 80, 40, 0.05)
    x[:, 0] = 1
    search = NearestNeighbors(n_neighbors=4, metric="euclidean", device="cpu").fit(x)
    assert not search._index.is_dense
    assert_neighbors(search.kneighbors(x + 1), distances("euclidean", x + 1, x))


@pytest.mark.parametrize("metric", DENSE)
def test_special_dense_rows(metric):
    x = np.random.default_rng(13).integers(-2, 3, (60, 5)).astype(np.float64)
    # Duplicates, a zero row, and numbers whose squares leave the range of float32.
    x[3], x[7], x[20] = x[2], x[2], 0
    if metric != "dot":
        x[30:33] *= 1e30
    x = x.astype(np.float32)
    search = NearestNeighbors(n_neighbors=59, metric=metric, device="cpu")
    dense = search.fit(x).kneighbors()
    assert search._index.is_dense
    sparse = search.fit(scipy.sparse.csr_array(x)).kneighbors()
    finite = np.isfinite(sparse[0]) & (np.abs(sparse[0]) < 1e9)
    np.testing.assert_array_equal(np.isnan(dense[0]), np.isnan(sparse[0]))
    np.testing.assert_allclose(dense[0][finite], sparse[0][finite], rtol=1e-5, atol=1e-5)
    for row in (2, 3, 7):
        nearest = [other for other in (2, 3, 7) if other != row]
        if metric in ("euclidean", "sqeuclidean"):
            found = dense[1][row, : (dense[0][row] == 0).sum()]
            assert set(nearest) <= set(found) and (np.diff(found) > 0).all()


def test_similarities():
    x = random_rows(np.random.default_rng(2), 40, 20, 0.5)
    search = NearestNeighbors(n_neighbors=40, radius=0.5, metric="inner-product", device="cpu")
    search.fit(x)
    products = x @ x.T
    found, indices = search.kneighbors(x)
    assert (np.diff(found) <= 0).all()
    np.testing.assert_allclose(found, np.take_along_axis(products, indices, 1), atol=1e-12)
    near, places = search.radius_neighbors(x, sort_results=True)
    for row, values in enumerate(near):
        assert set(places[row]) == set(np.flatnonzero(products[row] >= 0.5))
        assert (np.diff(values) <= 0).all()


def test_weights_of_columns():
    x, y = np.random.default_rng(3).random((2, 30, 8))
    w = np.arange(1.0, 9.0)
    search = NearestNeighbors(metric="manhattan", metric_params={"w": w}, device="cpu").fit(x)
    assert_neighbors(search.kneighbors(y), distances("manhattan", y, x, w=w))
    search = NearestNeighbors(metric="seuclidean", device="cpu").fit(x)
    scaled = distances("euclidean", y / x.std(axis=0, ddof=1), x / x.std(axis=0, ddof=1))
    assert search._index.is_dense
    assert_neighbors(search.kneighbors(y), scaled)
    for metric in ("euclidean", "cosine", "sqeuclidean"):
        search = NearestNeighbors(metric=metric, metric_params={"w": w}, device="cpu").fit(x)
        assert search._index.is_dense
        assert_neighbors(search.kneighbors(y), distances(metric, y, x, w=w))
    # A weight of infinity leaves zeros alone, as in a matrix.
    x[:, 2] = y[:, 2] = 0
    w[2] = np.inf
    search = NearestNeighbors(metric="euclidean", metric_params={"w": w}, device="cpu").fit(x)
    kept = np.delete(w, 2)
    expected = distances("euclidean", np.delete(y, 2, 1), np.delete(x, 2, 1), w=kept)
    assert_neighbors(search.kneighbors(y), expected)


def test_many_dense_queries():
    # More than a part of queries: 16,384.
    x = np.random.default_rng(14).integers(1, 40, (17_000, 3)).astype(np.float32)
    search = NearestNeighbors(n_neighbors=3, metric="sqeuclidean", device="cpu").fit(x)
    assert search._index.is_dense
    found, indices = search.kneighbors()
    assert (indices != np.arange(17_000)[:, None]).all()
    np.testing.assert_array_equal(((x[indices] - x[:, None]) ** 2).sum(axis=2), found)
    rows = slice(16_380, 16_390)
    every = ((x[rows, None] - x[None]) ** 2).sum(axis=2)
    every[np.arange(10), np.arange(16_380, 16_390)] = np.inf
    # Whole numbers: ties go to the lowest row.
    order = np.argsort(every, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(indices[rows], order)


def test_many_queries():
    # More than a part of queries: 16,384.
    x = np.random.default_rng(4).integers(0, 9, (17_000, 3)).astype(float)
    search = NearestNeighbors(n_neighbors=3, radius=0.5, metric="manhattan", device="cpu").fit(x)
    found, indices = search.kneighbors()
    assert indices.shape == (17_000, 3)
    assert (indices != np.arange(17_000)[:, None]).all()
    np.testing.assert_array_equal(np.abs(x[indices] - x[:, None]).sum(axis=2), found)
    some = search.kneighbors(x[16_380:16_390], n_neighbors=4)[0]
    np.testing.assert_array_equal(some[:, 1:], found[16_380:16_390])
    graph = search.radius_neighbors_graph()
    same = np.unique(x, axis=0, return_counts=True)[1]
    assert graph.shape == (17_000, 17_000) and graph.nnz == (same * (same - 1)).sum()


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("data", [load_digits, load_iris])
def test_classifier(data, weights):
    x, y = data(return_X_y=True)
    # Without ties of distances, votes are scikit-learn's.
    x = x + np.random.default_rng(5).normal(scale=1e-3, size=x.shape)
    ours = KNeighborsClassifier(7, weights=weights, device="cpu").fit(x[::2], y[::2])
    # By brute force, scikit-learn's distance of equal rows is not 0.
    theirs = sklearn.neighbors.KNeighborsClassifier(7, weights=weights, algorithm="kd_tree")
    theirs.fit(x[::2], y[::2])
    np.testing.assert_array_equal(ours.predict(x[1::2]), theirs.predict(x[1::2]))
    for query in (x[1::2], x[::2]):
        expected = theirs.predict_proba(query)
        np.testing.assert_allclose(ours.predict_proba(query), expected, atol=1e-9)
    assert ours.score(x[1::2], y[1::2]) == theirs.score(x[1::2], y[1::2]) > 0.9


def test_classifier_of_several_outputs():
    generator = np.random.default_rng(6)
    x, y = generator.random((60, 4)), generator.integers(0, 3, (60, 2))
    names = np.array(["a", "b", "c"])[y]
    ours = KNeighborsClassifier(3, device="cpu").fit(x, names)
    theirs = sklearn.neighbors.KNeighborsClassifier(3).fit(x, names)
    np.testing.assert_array_equal(ours.predict(x), theirs.predict(x))
    for found, expected in zip(ours.predict_proba(x), theirs.predict_proba(x)):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: 1 / (1 + d)])
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_regressor(outputs, weights):
    generator = np.random.default_rng(7)
    x, y = generator.random((80, 4)), generator.random((80, *outputs))
    ours = KNeighborsRegressor(4, weights=weights, device="cpu").fit(x[:60], y[:60])
    theirs = sklearn.neighbors.KNeighborsRegressor(4, weights=weights).fit(x[:60], y[:60])
    np.testing.assert_allclose(ours.predict(x), theirs.predict(x))


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_transformer_in_a_pipeline(mode):
    x, y = load_iris(return_X_y=True)
    x = x + np.random.default_rng(8).normal(scale=1e-3, size=x.shape)
    ours = KNeighborsTransformer(mode=mode, n_neighbors=6, device="cpu")
    theirs = sklearn.neighbors.KNeighborsTransformer(mode=mode, n_neighbors=6)
    found, expected = (make_pipeline(StandardScaler(), t).fit_transform(x) for t in (ours, theirs))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-7)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    if mode == "distance":
        chain = [
            make_pipeline(t, sklearn.neighbors.KNeighborsClassifier(5, metric="precomputed"))
            for t in (ours, theirs)
        ]
        found, expected = (c.fit(x[::2], y[::2]).predict(x[1::2]) for c in chain)
        np.testing.assert_array_equal(found, expected)


def test_estimators_travel():
    x, y = load_iris(return_X_y=True)
    for fitted in (
        NearestNeighbors(device="cpu").fit(x),
        NearestNeighbors(metric="cosine", device="cpu").fit(x),
        KNeighborsClassifier(device="cpu").fit(x, y),
        NearestNeighbors(metric_params={"w": [1, 2, 3, 4]}, metric="l1", device="cpu").fit(
            scipy.sparse.csr_array(x)
        ),
    ):
        copy = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(copy.kneighbors(x)[1], fitted.kneighbors(x)[1])
