from typing import Any, NamedTuple

from numpy.typing import ArrayLike

__version__: str

# Results are arrays of numpy, or of the library of the argument on a CUDA device.

class TopkResult(NamedTuple):
    values: Any
    indices: Any

def devices() -> list[str]: ...
def metrics() -> list[str]: ...
def pairwise_distances(
    X: Any,
    Y: Any | None = None,
    metric: str = "euclidean",
    *,
    p: float = 2,
    w: ArrayLike | None = None,
    V: ArrayLike | None = None,
    device: str = "auto",
) -> Any: ...
def topk(
    array: Any,
    k: int,
    *,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    device: str = "auto",
) -> TopkResult: ...
def topk_mask(
    array: Any, k: int, *, dim: int = -1, largest: bool = True, device: str = "auto"
) -> Any: ...
