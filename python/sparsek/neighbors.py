"""Nearest neighbors by brute force, with the conventions of ``sklearn.neighbors``.

Distances are exact. Equal distances are ordered by the lowest row, where scikit-learn takes any.
Estimators take ``device`` instead of ``algorithm``, ``leaf_size`` and ``n_jobs``.
"""

import numbers

import numpy as np
import scipy.sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _native
from ._arrays import as_matrix, as_rows, count, like, on_device, place, stays_dense
from ._distances import plain, resolve, variances

__all__ = [
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "NearestNeighbors",
]

_DTYPES = [np.float64, np.float32]
# None is a target that was left out.
_WITHOUT = object()


class _NeighborsBase(BaseEstimator):
    """Searches among fitted rows."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self):
        # Memory of a device does not travel; rows do.
        state = dict(super().__getstate__())
        state.pop("_index", None)
        return state

    def _fit(self, X, y=_WITHOUT, **options):
        options = {"accept_sparse": "csr", "dtype": _DTYPES, **options}
        if on_device(X):
            X = self._validated(X)
            if y is not _WITHOUT:
                raise TypeError("predictors take arrays in the memory of the CPU")
            self.n_features_in_ = X.shape[1]
        elif y is _WITHOUT:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
        params = dict(self.metric_params or {})
        unknown = sorted(set(params) - {"p", "w", "V"})
        if unknown:
            raise ValueError(f"metric_params has {unknown[0]}; p, w and V are known")
        params.setdefault("p", self.p)
        if params.get("V") is None and plain(self.metric) == "seuclidean":
            params["V"] = variances(X)
        self._metric, self._weights = resolve(self.metric, **params)
        self._fit_X = X
        self.n_samples_fit_ = X.shape[0]
        self.effective_metric_ = self._metric
        self._index = self._new_index()
        return y

    def _validated(self, X):
        """Returns rows on a CUDA device; NaN and infinities are not looked for."""
        X = as_rows(X)
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(f"the array has shape {tuple(X.shape)}; rows of columns are needed")
        return X

    def _device(self, X=None):
        return place(self.device, self._fit_X, X)

    def _new_index(self):
        dense = stays_dense(self._fit_X, self._metric, self._device())
        return _native.Index(self._matrix(self._fit_X, dense), self._metric)

    def _matrix(self, X, dense):
        rows = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
        dtype = None if on_device(X) else self._fit_X.dtype
        matrix = as_matrix(rows, dtype, self._device(X), dense)
        return matrix if self._weights is None else matrix.weighted(self._metric, self._weights)

    def _search(self, X, dense=True):
        """Returns index and query on the device; ``dense``: if the index is, dense rows stay so."""
        check_is_fitted(self)
        if not hasattr(self, "_index"):
            self._index = self._new_index()
        if X is None:
            return self._index, None
        if on_device(X) or on_device(self._fit_X):
            X = self._validated(X)
            self._device(X)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=self._fit_X.dtype, reset=False)
        return self._index, self._matrix(X, dense and self._index.is_dense)

    def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
        """Returns distances and indices of the nearest rows, nearest first.

        Parameters
        ----------
        X : rows to search for, or None
            None: each fitted row, which is not its own neighbor.
        n_neighbors : int, or None for that of the estimator
        return_distance : bool
            False: only the indices.

        Returns
        -------
        distances, indices
            Arrays of shape (queries, n_neighbors), on a CUDA device if the rows are there.
        """
        check_is_fitted(self)
        k = _neighbors(self.n_neighbors if n_neighbors is None else n_neighbors)
        index, query = self._search(X)
        found = index.kneighbors(query, k)
        distances, indices = map(like(self._fit_X if X is None else X), found)
        return (distances, indices) if return_distance else indices

    def kneighbors_graph(self, X=None, n_neighbors=None, mode="connectivity"):
        """Returns a CSR matrix of shape (queries, fitted rows) with n_neighbors entries per row.

        Entries are ones, or distances if ``mode`` is "distance"; they are stored nearest first.
        """
        _check_mode(mode)
        _check_host(self._fit_X if X is None else X)
        distances, indices = self.kneighbors(X, n_neighbors)
        rows, k = indices.shape
        values = distances.ravel() if mode == "distance" else np.ones(rows * k)
        indptr = np.arange(0, rows * k + 1, k) if k else np.zeros(rows + 1, dtype=np.int64)
        shape = (rows, self.n_samples_fit_)
        return scipy.sparse.csr_matrix((values, indices.ravel(), indptr), shape=shape)


class NearestNeighbors(_NeighborsBase):
    """Searches for the nearest rows: ``sklearn.neighbors.NearestNeighbors``.

    Parameters
    ----------
    n_neighbors : int
    radius : float
    metric : str
        A name of ``sparsek.metrics()``.
    p : float
        The exponent of "minkowski".
    metric_params : dict, optional
        ``w``, ``V`` or ``p``, as arguments of ``sparsek.pairwise_distances``.
    device : str
        "auto", "cpu", "vulkan" or "cuda:0".
    """

    def __init__(
        self,
        *,
        n_neighbors=5,
        radius=1.0,
        metric="minkowski",
        p=2,
        metric_params=None,
        device="auto",
    ):
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.device = device

    def fit(self, X, y=None):
        """Takes the rows to search among."""
        self._fit(X)
        return self

    def radius_neighbors(self, X=None, radius=None, return_distance=True, sort_results=False):
        """Returns distances and indices of all rows within a radius, an array per query each.

        With ``sort_results`` nearest first, else by row. The radius is inclusive. Of "dot", all
        rows with at least ``radius`` are returned.
        """
        indptr, distances, indices = self._within(X, radius)
        ends = indptr[1:-1]
        distances, indices = _split(distances, ends), _split(indices, ends)
        if sort_results:
            sign = -1 if self._metric == "dot" else 1
            for row, values in enumerate(distances):
                order = np.argsort(sign * values, kind="stable")
                distances[row], indices[row] = values[order], indices[row][order]
        return (distances, indices) if return_distance else indices

    def radius_neighbors_graph(
        self, X=None, radius=None, mode="connectivity", sort_results=False
    ):
        """Returns a CSR matrix of shape (queries, fitted rows) with an entry per neighbor."""
        _check_mode(mode)
        if sort_results:
            distances, indices = self.radius_neighbors(X, radius, sort_results=True)
            indptr = np.cumsum([0, *(len(row) for row in indices)])
            distances = np.concatenate([np.empty(0), *distances])
            indices = np.concatenate([np.empty(0, dtype=np.int64), *indices])
        else:
            indptr, distances, indices = self._within(X, radius)
        values = distances if mode == "distance" else np.ones(len(indices))
        shape = (len(indptr) - 1, self.n_samples_fit_)
        return scipy.sparse.csr_matrix((values, indices, indptr), shape=shape)

    def _within(self, X, radius):
        check_is_fitted(self)
        _check_host(self._fit_X if X is None else X)
        radius = float(self.radius if radius is None else radius)
        index, query = self._search(X, dense=False)
        found = index.radius_neighbors(query, radius)
        return tuple(map(np.asarray, found))


class KNeighborsTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, _NeighborsBase
):
    """Turns rows into a graph of neighbors: ``sklearn.neighbors.KNeighborsTransformer``.

    With mode "distance", each query has one neighbor more, since a fitted row finds itself.
    """

    def __init__(
        self,
        *,
        mode="distance",
        n_neighbors=5,
        metric="minkowski",
        p=2,
        metric_params=None,
        device="auto",
    ):
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.device = device

    def fit(self, X, y=None):
        """Takes the rows to search among."""
        _check_mode(self.mode)
        self._fit(X)
        self._n_features_out = self.n_samples_fit_
        return self

    def transform(self, X):
        """Returns the graph of the neighbors of X among the fitted rows."""
        check_is_fitted(self)
        k = _neighbors(self.n_neighbors) + (self.mode == "distance")
        return self.kneighbors_graph(X, n_neighbors=k, mode=self.mode)

    def fit_transform(self, X, y=None):
        """Returns the graph of the neighbors of X among its own rows."""
        return self.fit(X).transform(X)


class _Predictor(_NeighborsBase):
    def __init__(
        self,
        n_neighbors=5,
        *,
        weights="uniform",
        metric="minkowski",
        p=2,
        metric_params=None,
        device="auto",
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.device = device

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def _weighted(self, X):
        """Returns indices and weights of each query's neighbors."""
        distances, indices = self.kneighbors(X)
        if callable(self.weights):
            return indices, np.asarray(self.weights(distances), dtype=np.float64)
        if self.weights in (None, "uniform"):
            return indices, np.ones(distances.shape)
        if self.weights != "distance":
            raise ValueError(
                f'weights is {self.weights!r}; there are "uniform", "distance" and functions'
            )
        if self._metric == "dot":
            raise ValueError("neighbors cannot be weighted by similarity: larger is nearer")
        with np.errstate(divide="ignore"):
            weights = 1 / distances.astype(np.float64)
        exact = np.isinf(weights)
        return indices, np.where(exact.any(axis=1, keepdims=True), exact, weights)


class KNeighborsClassifier(ClassifierMixin, _Predictor):
    """Classifies by vote of the nearest rows: ``sklearn.neighbors.KNeighborsClassifier``.

    Of equal votes, the least class wins.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, y):
        """Takes rows and their classes."""
        y = self._fit(X, y, multi_output=True)
        check_classification_targets(y)
        self.outputs_2d_ = y.ndim == 2 and y.shape[1] > 1
        columns = y.reshape(len(y), -1).T
        found = [np.unique(column, return_inverse=True) for column in columns]
        classes = [names for names, _ in found]
        self.classes_ = classes if self.outputs_2d_ else classes[0]
        self._y = np.stack([labels for _, labels in found], axis=1)
        return self

    def predict_proba(self, X):
        """Returns the share of votes of each class, a list of arrays for several outputs."""
        check_is_fitted(self)
        indices, weights = self._weighted(X)
        classes = self.classes_ if self.outputs_2d_ else [self.classes_]
        shares = []
        for output, names in enumerate(classes):
            labels = self._y[indices, output]
            votes = np.zeros((len(indices), len(names)))
            np.add.at(votes, (np.arange(len(indices))[:, None], labels), weights)
            total = votes.sum(axis=1, keepdims=True)
            shares.append(votes / np.where(total == 0, 1, total))
        return shares if self.outputs_2d_ else shares[0]

    def predict(self, X):
        """Returns the class of each query with the most votes."""
        shares = self.predict_proba(X)
        if not self.outputs_2d_:
            return self.classes_[shares.argmax(axis=1)]
        names = zip(self.classes_, shares)
        return np.stack([names[share.argmax(axis=1)] for names, share in names], axis=1)


class KNeighborsRegressor(RegressorMixin, _Predictor):
    """Predicts means over the nearest rows: ``sklearn.neighbors.KNeighborsRegressor``."""

    def fit(self, X, y):
        """Takes rows and their targets."""
        self._y = self._fit(X, y, multi_output=True, y_numeric=True)
        return self

    def predict(self, X):
        """Returns the mean of each query's neighbors."""
        check_is_fitted(self)
        indices, weights = self._weighted(X)
        targets = self._y.reshape(len(self._y), -1)[indices].astype(np.float64)
        means = np.einsum("ij,ijk->ik", weights, targets) / weights.sum(axis=1, keepdims=True)
        return means.reshape(len(indices), *self._y.shape[1:])


def _neighbors(value):
    if not isinstance(value, (numbers.Integral, np.integer)):
        raise TypeError(f"n_neighbors is {value!r}; an integer is needed")
    value = count("n_neighbors", value)
    if value == 0:
        raise ValueError("n_neighbors is 0; at least 1 is needed")
    return value


def _check_host(X):
    if on_device(X):
        raise TypeError("graphs and radius searches take arrays in the memory of the CPU")


def _check_mode(mode):
    if mode not in ("connectivity", "distance"):
        raise ValueError(f'mode is {mode!r}; there are "connectivity" and "distance"')


def _split(values, ends):
    """Returns an array of arrays."""
    parts = np.split(values, ends)
    rows = np.empty(len(parts), dtype=object)
    rows[:] = parts
    return rows
