"""Refused requests: the exception, and a reason with limit and request."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse

import sparsek
from sparsek.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sparsek.topk(X, 4), ValueError, ["k = 4", "3 elements", "(4, 3)"]),
        (lambda: sparsek.topk(X, -1), ValueError, ["-1"]),
        (lambda: sparsek.topk(X, 1.5), TypeError, ["1.5"]),
        (lambda: sparsek.topk(X, True), TypeError, ["True"]),
        (lambda: sparsek.topk(X, 1, dim=2), ValueError, ["dimension 2", "(4, 3)"]),
        (lambda: sparsek.topk(np.float64(1), 1), ValueError, ["dimension -1"]),
        (lambda: sparsek.topk(X.astype(complex), 1), TypeError, ["complex128", "float64"]),
        (lambda: sparsek.topk(X.astype(np.uint64), 1), TypeError, ["uint64", "int64"]),
        (lambda: sparsek.topk_mask(X.astype(int), 1), TypeError, ["float32"]),
        (lambda: sparsek.topk(X, 1, device="tpu"), ValueError, ["tpu", "vulkan"]),
        (lambda: sparsek.topk(X, 1, device="cpu:1"), ValueError, ["cpu:1"]),
        (lambda: sparsek.topk(X, 1, device="cuda:x"), (ValueError, RuntimeError), ["cuda"]),
        (lambda: sparsek.topk(X, 1, device="cuda:999"), RuntimeError, ["cuda"]),
        (lambda: sparsek.pairwise_distances(X, X[:, :2]), ValueError, ["3 and 2 columns"]),
        (lambda: sparsek.pairwise_distances(X, metric="l3"), ValueError, ["l3", "euclidean"]),
        (lambda: sparsek.pairwise_distances(X, metric=max), TypeError, ["euclidean"]),
        (lambda: sparsek.pairwise_distances(X[0]), ValueError, ["(3,)"]),
        (lambda: sparsek.pairwise_distances(X * 1j), TypeError, ["complex128"]),
        (lambda: sparsek.pairwise_distances(X, metric="minkowski", p=0), ValueError, ["0"]),
        (lambda: sparsek.pairwise_distances(X, w=[1, 2]), ValueError, ["2 weights", "3"]),
        (lambda: sparsek.pairwise_distances(X, w=[1, -2, 3]), ValueError, ["-2", "column 1"]),
        (lambda: sparsek.pairwise_distances(X, metric="yule", w=[1, 2, 3]), ValueError, ["yule"]),
        (lambda: sparsek.pairwise_distances(X, V=[1, 2, 3]), ValueError, ["seuclidean"]),
        (
            lambda: sparsek.pairwise_distances(scipy.sparse.csr_array((1, 1 << 40))),
            ValueError,
            [str(1 << 40), str((1 << 31) - 4096)],
        ),
        (
            lambda: sparsek.pairwise_distances(scipy.sparse.csr_array((1 << 22, 1))),
            MemoryError,
            ["4194304 × 4194304 distances", "128.0 TiB", "SPARSEK_MAX_MEMORY"],
        ),
        (lambda: NearestNeighbors().fit(X).kneighbors(), ValueError, ["5 neighbors", "4 rows"]),
        (lambda: NearestNeighbors(n_neighbors=0).fit(X).kneighbors(), ValueError, ["0"]),
        (lambda: NearestNeighbors(n_neighbors="2").fit(X).kneighbors(), TypeError, ["'2'"]),
        (lambda: NearestNeighbors(metric="haversine").fit(X), ValueError, ["haversine"]),
        (lambda: NearestNeighbors(metric_params={"q": 1}).fit(X), ValueError, ["q"]),
        (lambda: KNeighborsTransformer(mode="both").fit(X), ValueError, ["both", "distance"]),
        (
            lambda: KNeighborsClassifier(2, weights="near").fit(X, [0, 1, 0, 1]).predict(X),
            ValueError,
            ["near", "uniform"],
        ),
        (
            lambda: KNeighborsClassifier(2, weights="distance", metric="dot")
            .fit(X, [0, 1, 0, 1])
            .predict(X),
            ValueError,
            ["larger is nearer"],
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_metrics_are_checked_with_the_fit():
    with pytest.raises(ValueError, match="no metric is called nowhere"):
        NearestNeighbors(metric="nowhere").fit(X)


def test_devices_are_listed():
    found = sparsek.devices()
    assert found[-1] == "cpu"
    assert all(name.split(":")[0] in ("cuda", "vulkan") for name in found[:-1])


# Seconds of work: 12,000 dense rows of 1500 columns with one another.
WORK = """
import sys
import numpy as np
import sparsek

x = np.random.default_rng(1).random((12000, 1500))
print("begins", flush=True)
try:
    sparsek.pairwise_distances(x, metric="canberra", device="cpu")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
print("ended", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_an_interrupt_ends_the_wait():
    process = subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdout=subprocess.PIPE,
        text=True,
        # Shells start processes in the background with the signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "begins\n"
    time.sleep(1)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(timeout=60) == 7
    assert time.monotonic() - start < 20


def test_python_runs_meanwhile():
    x = np.random.default_rng(2).random((1500, 600))
    counted = 0
    done = threading.Event()

    def compute():
        sparsek.pairwise_distances(x, metric="canberra", device="cpu")
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 20


def test_threads_share_a_device():
    x = np.random.default_rng(3).random((300, 50))
    expected = sparsek.pairwise_distances(x, device="cpu")
    results = [None] * 8

    def compute(place):
        results[place] = sparsek.pairwise_distances(x, device="cpu")

    threads = [threading.Thread(target=compute, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_is_refused():
    script = textwrap.dedent("""
        import os
        import sparsek

        sparsek.topk([1.0, 2.0], 1, device="cpu")
        child = os.fork()
        if child == 0:
            try:
                sparsek.topk([1.0, 2.0], 1, device="cpu")
            except RuntimeError as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 7
