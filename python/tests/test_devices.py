"""Every device of this machine beside the CPU."""

import numpy as np
import pytest
from oracle import assert_close, random_rows

import sparsek
from sparsek.neighbors import NearestNeighbors


@pytest.mark.parametrize("device", ["auto", *sparsek.devices()])
def test_devices_agree(device):
    generator = np.random.default_rng(1)
    x = generator.normal(size=(64, 100)).astype(np.float32)
    found, expected = (sparsek.topk(x, 7, device=name) for name in (device, "cpu"))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.values, expected.values)
    found, expected = (sparsek.topk_mask(x, 7, device=name) for name in (device, "cpu"))
    np.testing.assert_array_equal(found, expected)

    x = random_rows(generator, 40, 60, 0.3, whole=True).astype(np.float32)
    for metric in ("manhattan", "euclidean", "jaccard"):
        found, expected = (
            sparsek.pairwise_distances(x, metric=metric, device=name) for name in (device, "cpu")
        )
        assert_close(found, expected, 1e-5)
    found, expected = (
        NearestNeighbors(n_neighbors=5, metric="manhattan", device=name).fit(x).kneighbors()
        for name in (device, "cpu")
    )
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])
    # Whole numbers: sums are exact. Dense rows where the device multiplies matrices.
    found, expected = (
        NearestNeighbors(n_neighbors=5, metric="sqeuclidean", device=name).fit(x).kneighbors()
        for name in (device, "cpu")
    )
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("device", sparsek.devices())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_a_device_lacks_is_named(device, dtype):
    x = (np.random.default_rng(2).random((20, 8)) + 0.1).astype(dtype)
    try:
        found = sparsek.pairwise_distances(x, metric="kl", device=device)
    except (RuntimeError, TypeError) as error:
        # Vulkan has no logarithms of f64, some GPUs no f64.
        assert dtype == np.float64 and "f64" in str(error).lower()
        assert "\n" not in str(error)
    else:
        assert_close(found, sparsek.pairwise_distances(x, metric="kl", device="cpu"), 1e-4)
