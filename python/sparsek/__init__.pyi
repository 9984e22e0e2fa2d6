from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

__version__: str

class TopkResult(NamedTuple):
    values: NDArray[Any]
    indices: NDArray[Any]

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
) -> NDArray[Any]: ...
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
) -> NDArray[Any]: ...
