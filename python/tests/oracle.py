"""Distances by scipy in float64, and matrices to compare them on."""

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

BOOLEAN = {
    "dice": "dice",
    "jaccard": "jaccard",
    "matching": "hamming",
    "rogerstanimoto": "rogerstanimoto",
    "russell-rao": "russellrao",
    "sokalsneath": "sokalsneath",
    "yule": "yule",
}
NUMERIC = {
    "braycurtis": "braycurtis",
    "canberra": "canberra",
    "chebyshev": "chebyshev",
    "correlation": "correlation",
    "cosine": "cosine",
    "euclidean": "euclidean",
    "hamming": "hamming",
    "jensen-shannon": "jensenshannon",
    "manhattan": "cityblock",
    "sqeuclidean": "sqeuclidean",
}
# Metrics of rows without negative elements.
SHARES = ["hellinger", "jensen-shannon", "kl", "symmetric-kl"]
# Not in scipy: written out below.
FORMULAS = ["dot", "hellinger", "kl", "symmetric-kl"]
METRICS = sorted([*BOOLEAN, *NUMERIC, *FORMULAS, "minkowski"])
FORMATS = ["csr", "csc", "coo", "dense"]


def distances(metric, x, y, p=3.0, **weights):
    """Returns all distances in float64, NaN where 0 is divided by 0."""
    x, y = (np.asarray(a, dtype=np.float64) for a in (x, y))
    with np.errstate(all="ignore"):
        if metric in BOOLEAN:
            return cdist(x != 0, y != 0, BOOLEAN[metric])
        if metric in NUMERIC:
            return cdist(x, y, NUMERIC[metric], **weights)
        if metric == "minkowski":
            return cdist(x, y, "minkowski", p=p, **weights)
        if metric == "dot":
            return x @ y.T
        a, b = x[:, None, :], y[None, :, :]
        if metric == "hellinger":
            a, b = (v / v.sum(axis=2, keepdims=True) for v in (a, b))
            overlap = (np.sqrt(a) * np.sqrt(b)).sum(axis=2)
            return np.sqrt(np.maximum(0, 1 - overlap))
        kl = np.where(a == 0, 0, a * np.log(a / b)).sum(axis=2)
        if metric == "kl":
            return kl
        terms = np.where(a == b, 0, (a - b) * np.log(a / b))
        return terms.sum(axis=2)


def cleaned(metric, x):
    """Returns rows on which a metric is defined."""
    return np.abs(x) if metric in SHARES else x


def as_format(x, name):
    """Returns rows in one of FORMATS."""
    return x if name == "dense" else getattr(scipy.sparse, f"{name}_array")(x)


def random_rows(generator, rows, cols, density, whole=False):
    """Returns a dense matrix of which a share is not zero."""
    shape = (rows, cols)
    values = generator.integers(-4, 5, shape) if whole else generator.normal(size=shape)
    return np.where(generator.random(shape) < density, values, 0).astype(np.float64)


def real_matrices():
    """Returns matrices that scikit-learn ships."""
    loaders = (load_breast_cancer, load_digits, load_iris, load_wine)
    return {load.__name__.removeprefix("load_"): load().data for load in loaders}


def assert_close(found, expected, tolerance=1e-9):
    """Compares distances relative to themselves, and to their greatest or 1."""
    found = np.asarray(found, dtype=np.float64)
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(found[np.isinf(expected)], expected[np.isinf(expected)])
    scale = np.abs(expected[finite]).max(initial=1)
    np.testing.assert_allclose(
        found[finite], expected[finite], rtol=tolerance, atol=tolerance * scale
    )


def assert_neighbors(found, expected, largest=False, tolerance=1e-9):
    """Checks that neighbors are nearest by a matrix of distances.

    The k distances equal the k least expected ones, and each index has its distance. Where
    distances tie, any of them is right, but none twice.
    """
    distances, indices = found
    keys = np.minimum(-expected if largest else expected, np.finfo(np.float64).max)
    order = np.argsort(np.where(np.isnan(expected), np.inf, keys), axis=1)
    k = indices.shape[1]
    assert_close(distances, np.take_along_axis(expected, order[:, :k], axis=1), tolerance)
    assert_close(distances, np.take_along_axis(expected, indices, axis=1), tolerance)
    assert all(len(set(row)) == k for row in indices)
