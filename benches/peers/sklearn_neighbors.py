#!/usr/bin/env python3
"""Times nearest neighbors from Python: sparsek beside scikit-learn.

    sklearn_neighbors.py [--device cpu] [--metric cosine] FILE.npz...
    sklearn_neighbors.py --overhead

Files are matrices that `scipy.sparse.save_npz` wrote. Each row with entries, in float32, is a query
for its 16 neighbors. Distances are compared before anything is timed. Prints JSON lines per file
and metric, sparsek's and scikit-learn's: medians of up to five calls within 20 s. `--overhead`
times a search that takes about 10 ms, and one of two rows, which is the wrapper alone.
"""
import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import scipy.sparse
import sklearn
import sklearn.neighbors

from sparsek.neighbors import NearestNeighbors

K = 16


def median_ms(run, runs=5, limit=20.0):
    times, begin = [], time.perf_counter()
    while len(times) < runs and (not times or time.perf_counter() - begin < limit):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def compare(path, metric, device):
    x = scipy.sparse.csr_array(scipy.sparse.load_npz(path)).astype(np.float32)
    # The cosine of an empty row is NaN here and in SciPy, 1 in scikit-learn.
    x = x[np.diff(x.indptr) > 0]
    ours = NearestNeighbors(n_neighbors=K, metric=metric, device=device).fit(x)
    peer = sklearn.neighbors.NearestNeighbors(
        n_neighbors=K, metric=metric, algorithm="brute", n_jobs=-1
    ).fit(x)
    distances, expected = ours.kneighbors(x)[0], peer.kneighbors(x)[0]
    # scikit-learn computes cosines in float32, and is off by some 1e-4 near zero.
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-3)
    case = {
        "bench": "python",
        "case": pathlib.Path(path).stem,
        "method": f"kneighbors, {metric}",
        "dtype": "f32",
        "k": K,
    }
    ms = median_ms(lambda: ours.kneighbors(x))
    yield {**case, "backend": device, "ms": ms, "checked": len(distances)}
    name = f"scikit-learn {sklearn.__version__}"
    yield {**case, "peer": name, "ms": median_ms(lambda: peer.kneighbors(x))}


def overhead(device):
    """Times searches of about 10 ms and of two rows."""
    rows = 64
    random = np.random.default_rng(1)
    while True:
        x = scipy.sparse.random_array((rows, 2000), density=0.02, rng=random, dtype=np.float32)
        search = NearestNeighbors(n_neighbors=K, metric="cosine", device=device)
        search.fit(scipy.sparse.csr_array(x))
        search.kneighbors()
        ms = median_ms(search.kneighbors, runs=51)
        if ms >= 10:
            break
        rows *= 2
    few = NearestNeighbors(n_neighbors=1, metric="cosine", device=device)
    few.fit(scipy.sparse.csr_array(np.eye(2, dtype=np.float32)))
    few.kneighbors()
    wrapper_ms = median_ms(few.kneighbors, runs=501)
    return {
        "bench": "python",
        "case": f"{rows} rows",
        "method": "overhead",
        "backend": device,
        "dtype": "f32",
        "k": K,
        "ms": ms,
        "wrapper_ms": wrapper_ms,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--metric", action="append")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--overhead", action="store_true")
    options = parser.parse_args()
    for path in options.files:
        for metric in options.metric or ["cosine", "manhattan"]:
            for line in compare(path, metric, options.device):
                print(json.dumps(line), flush=True)
    if options.overhead:
        print(json.dumps(overhead(options.device)), flush=True)


if __name__ == "__main__":
    main()
