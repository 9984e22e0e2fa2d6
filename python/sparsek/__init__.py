"""Top-k, distances and nearest neighbors on GPUs and CPUs, for numpy and scipy.

``topk`` and ``topk_mask`` select along an axis, ``pairwise_distances`` computes 22 metrics of dense
and sparse rows, and ``sparsek.neighbors`` has estimators for scikit-learn.

Every function takes ``device``: "auto" (a GPU if there is one, else the CPU), "cpu", "vulkan" or
"cuda", the latter two also with a number, such as "cuda:1". ``devices()`` lists what is there.
"""

from importlib.metadata import PackageNotFoundError, version

from ._distances import metrics, pairwise_distances
from ._native import devices
from ._topk import topk, topk_mask

try:
    __version__ = version("sparsek")
except PackageNotFoundError:  # A checkout that was not installed.
    __version__ = "0"

__all__ = ["devices", "metrics", "pairwise_distances", "topk", "topk_mask"]
