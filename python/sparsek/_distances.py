"""Distances between rows."""

import numpy as np

from . import _native
from ._arrays import as_matrix, as_rows, float_dtype, like, on_device, place


def metrics():
    """Returns the names that ``metric`` takes, aliases last. Hyphens and underscores are optional.

    "minkowski" takes its exponent from ``p``; "seuclidean" takes variances ``V``.
    """
    names, aliases = _native.metrics()
    return [*names, "seuclidean", *(alias for alias, _ in aliases)]


def pairwise_distances(X, Y=None, metric="euclidean", *, p=2, w=None, V=None, device="auto"):
    """Returns all distances of the rows of X to those of Y, or of X.

    Metrics have the numbers of ``scipy.spatial.distance.cdist``; "dot" is the inner product.
    Boolean metrics, such as "jaccard", test for nonzero.

    Parameters
    ----------
    X, Y : arrays or scipy sparse matrices
        Dense and sparse may be mixed. float32 is computed in float32, anything wider in float64.
        Arrays of other libraries on a CUDA device are compared there.
    metric : str
        A name of ``metrics()``, or "minkowski:3" with the exponent.
    p : float
        The exponent of "minkowski".
    w : array of one weight per column
        For "cityblock", "euclidean", "sqeuclidean", "cosine", "dot", "minkowski", "chebyshev" and
        "braycurtis", as in scipy.
    V : array of one variance per column
        For "seuclidean"; those of X and Y together by default.
    device : str

    Returns
    -------
    array of shape (rows of X, rows of Y)
        Of numpy, or of the library of X on its device.
    """
    X = as_rows(X)
    Y = None if Y is None else as_rows(Y)
    device = place(device, X, Y)
    dtype = float_dtype(X) if Y is None else float_dtype(X, Y)
    x = as_matrix(X, dtype, device)
    y = None if Y is None else as_matrix(Y, dtype, device)
    if V is None and plain(metric) == "seuclidean":
        V = variances(X, Y)
    metric, weights = resolve(metric, p=p, w=w, V=V)
    if weights is not None:
        x = x.weighted(metric, weights)
        y = None if y is None else y.weighted(metric, weights)
    return like(X)(_native.pairwise_distances(x, y, metric))


def plain(metric):
    """Returns a name without hyphens and underscores."""
    if not isinstance(metric, str):
        raise TypeError(f"metric is {metric!r}; a name is needed: {', '.join(metrics())}")
    return metric.replace("-", "").replace("_", "")


def resolve(metric, *, p=2, w=None, V=None):
    """Returns the native name of a metric, and weights of columns or None."""
    name = plain(metric)
    if name == "seuclidean":
        if w is not None:
            raise ValueError("seuclidean takes variances V, no weights w")
        if V is None:
            raise ValueError("seuclidean needs variances V, one per column")
        return "euclidean", 1 / np.ascontiguousarray(V, dtype=np.float64)
    if V is not None:
        raise ValueError(f"{metric} takes no variances V; seuclidean does")
    if name == "minkowski":
        p = float(p)
        metric = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}.get(p)
        if metric is None:
            if not (np.isfinite(p) and p > 0):
                raise ValueError(f"the exponent p = {p} is not greater than 0")
            metric = f"minkowski:{p!r}"
    metric = _native.canonical(metric)
    return metric, None if w is None else np.ascontiguousarray(w, dtype=np.float64)


def variances(X, Y=None):
    """Returns the sample variance of each column, as scipy's default."""
    if on_device(X):
        raise ValueError("seuclidean needs variances V for arrays on a CUDA device")
    rows = [x.toarray() if hasattr(x, "toarray") else x for x in (X, Y) if x is not None]
    return np.var(np.vstack(rows).astype(np.float64), axis=0, ddof=1)
