from typing import Any

from numpy.typing import NDArray

MAX_ENTRIES: int

class Array:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

class DeviceArray:
    """With the feature cuda."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...

class Matrix:
    @staticmethod
    def from_csr(
        shape: tuple[int, int],
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[Any],
        dtype: str,
        device: str,
    ) -> Matrix: ...
    @staticmethod
    def from_dense(
        shape: tuple[int, int], values: Any, dtype: str, device: str
    ) -> Matrix: ...
    @staticmethod
    def compress(
        shape: tuple[int, int], values: NDArray[Any], dtype: str, device: str
    ) -> Matrix: ...
    def weighted(self, metric: str, weights: NDArray[Any]) -> Matrix: ...
    def to_csr(self) -> tuple[Array, Array, Array]: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int | None: ...

class Index:
    def __init__(self, rows: Matrix, metric: str) -> None: ...
    @property
    def is_dense(self) -> bool: ...
    def kneighbors(self, query: Matrix | None, k: int) -> tuple[Output, Output]: ...
    def radius_neighbors(
        self, query: Matrix | None, radius: float
    ) -> tuple[Array, Array, Array]: ...

Output = Array | DeviceArray

def devices() -> list[str]: ...
def has_cuda() -> bool: ...
def canonical(metric: str) -> str: ...
def metrics() -> tuple[list[str], list[tuple[str, str]]]: ...
def searches_dense(metric: str, device: str) -> bool: ...
def pairwise_distances(x: Matrix, y: Matrix | None, metric: str) -> Output: ...
def topk(
    array: Any,
    dtype: str,
    shape: tuple[int, int, int],
    result: tuple[int, ...],
    k: int,
    largest: bool,
    sorted: bool,
    device: str,
) -> tuple[Output, Output]: ...
def topk_mask(
    array: Any,
    dtype: str,
    shape: tuple[int, int, int],
    result: tuple[int, ...],
    k: int,
    largest: bool,
    device: str,
) -> Output: ...
