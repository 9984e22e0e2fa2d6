"""Arrays of other libraries by DLPack."""

import threading

import numpy as np
import pytest
import sklearn.neighbors
from oracle import assert_close
from scipy.spatial.distance import cdist

import sparsek
from sparsek import _native
from sparsek.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors


class OnCuda:
    """Shape and place of an array on a CUDA device, without memory."""

    def __init__(self, shape, number=0):
        self.shape, self.ndim, self.number = shape, len(shape), number

    def __dlpack_device__(self):
        return 2, self.number


class OnCpu:
    """An array that shows itself by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def test_arrays_in_the_memory_of_the_cpu():
    x = np.random.default_rng(1).normal(size=(5, 40)).astype(np.float32)
    found, expected = sparsek.topk(OnCpu(x), 3), sparsek.topk(x, 3)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(
        sparsek.pairwise_distances(OnCpu(x)), sparsek.pairwise_distances(x)
    )


def test_requests_that_mix_devices_are_refused():
    x, cpu = OnCuda((4, 3)), np.ones((4, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="not on one device"):
        sparsek.pairwise_distances(x, cpu)
    with pytest.raises(ValueError, match="not on one device"):
        sparsek.pairwise_distances(x, OnCuda((4, 3), 1))
    with pytest.raises(ValueError, match="the array is on cuda:1, and device is 'cpu'"):
        sparsek.topk(OnCuda((4, 3), 1), 2, device="cpu")
    with pytest.raises(ValueError, match="k = 4 is greater than the 3 elements"):
        sparsek.topk(x, 4)


def test_what_stays_on_the_cpu_is_refused():
    x = OnCuda((4, 3))
    with pytest.raises(TypeError, match="predictors take arrays in the memory of the CPU"):
        KNeighborsClassifier().fit(x, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="seuclidean needs variances V"):
        NearestNeighbors(metric="seuclidean").fit(x)
    with pytest.raises(ValueError, match=r"the array has shape \(4,\)"):
        NearestNeighbors().fit(OnCuda((4,)))


@pytest.mark.skipif(_native.has_cuda(), reason="CUDA is linked")
@pytest.mark.parametrize("call", [lambda x: sparsek.topk(x, 2), sparsek.pairwise_distances])
def test_builds_without_cuda_say_so(call):
    with pytest.raises(RuntimeError, match="lacks the feature cuda"):
        call(OnCuda((4, 3)))


@pytest.fixture
def torch():
    """PyTorch with a CUDA device that sparsek has too."""
    torch = pytest.importorskip("torch")
    if not (_native.has_cuda() and torch.cuda.is_available()):
        pytest.skip("CUDA is not linked, or there is no device")
    return torch


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_selections_stay_on_the_device(torch, dtype):
    torch.manual_seed(1)
    dtype = getattr(torch, dtype)
    x = (torch.randn(3, 500, 4, device="cuda") * 100).to(dtype)
    values, indices = sparsek.topk(x, 9, dim=1)
    assert values.is_cuda and indices.is_cuda and indices.dtype == torch.int64
    expected = x.topk(9, dim=1).values
    assert torch.equal(values, expected)
    assert torch.equal(x.gather(1, indices), values)
    if dtype.is_floating_point:
        kept = sparsek.topk_mask(x, 9, dim=1)
        selected = torch.zeros_like(x, dtype=torch.bool).scatter(1, indices, True)
        assert torch.equal(kept, torch.where(selected, x, torch.zeros_like(x)))


def test_results_outlive_what_they_came_from(torch):
    results = []
    for number in range(20):
        x = torch.full((1000, 1000), float(number), device="cuda")
        results.append((number, sparsek.topk(x, 2).values))
        del x
    for number, values in results:
        assert bool((values == number).all())


def test_queued_work_is_awaited(torch):
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.zeros(4096, 4096, device="cuda")
        for number in range(50):
            x += 1
            values = sparsek.topk(x, 1).values
            assert bool((values == number + 1).all())


def test_the_current_device_stays(torch):
    before = torch.cuda.current_device()
    last = torch.device("cuda", torch.cuda.device_count() - 1)
    values = sparsek.topk(torch.randn(3, 50, device=last), 2).values
    assert values.device == last
    del values
    assert torch.cuda.current_device() == before
    assert torch.empty(1, device="cuda").device.index == before


def test_views_and_empty_requests(torch):
    x = torch.randn(5, 40, device="cuda")
    assert torch.equal(sparsek.topk(x[2:], 3).values, x[2:].topk(3).values)
    assert sparsek.topk(x, 0).values.shape == (5, 0)
    assert sparsek.topk(x[:0], 3).indices.shape == (0, 3)


def test_other_threads_may_free_results(torch):
    values = [sparsek.topk(torch.randn(4, 100, device="cuda"), 5).values for _ in range(8)]
    thread = threading.Thread(target=values.clear)
    thread.start()
    thread.join()
    x = torch.randn(4, 100, device="cuda")
    assert torch.equal(sparsek.topk(x, 5).values, x.topk(5).values)


def test_distances_and_neighbors_stay_on_the_device(torch):
    torch.manual_seed(2)
    x, y = (torch.randn(rows, 20, device="cuda") for rows in (60, 30))
    for metric in ("euclidean", "cosine", "cityblock", "chebyshev", "canberra"):
        found = sparsek.pairwise_distances(x, y, metric=metric)
        assert found.is_cuda
        expected = cdist(x.double().cpu().numpy(), y.double().cpu().numpy(), metric)
        assert_close(found.cpu().numpy(), expected, 1e-5)
        peer = sklearn.neighbors.NearestNeighbors(metric=metric, algorithm="brute")
        peer.fit(x.cpu().numpy())
        ours = NearestNeighbors(metric=metric).fit(x)
        for query in (None, y):
            distances, indices = ours.kneighbors(query, 7)
            assert distances.is_cuda and indices.dtype == torch.int64
            places = peer.kneighbors(None if query is None else query.cpu().numpy(), 7)[1]
            np.testing.assert_array_equal(indices.cpu().numpy(), places)


def test_layouts_and_dtypes_that_are_refused(torch):
    x = torch.ones(6, 8, device="cuda")
    with pytest.raises(ValueError, match="not contiguous"):
        sparsek.topk(x.T, 2)
    with pytest.raises(TypeError, match="supported: float16, bfloat16"):
        sparsek.topk(x.bool(), 2)
    with pytest.raises(TypeError, match="I32 is not supported for rows"):
        sparsek.pairwise_distances(x.int())
    fitted = KNeighborsTransformer(n_neighbors=2).fit(x)
    with pytest.raises(TypeError, match="in the memory of the CPU"):
        fitted.transform(x)
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.kneighbors(x[:, :3].contiguous(), 1)
