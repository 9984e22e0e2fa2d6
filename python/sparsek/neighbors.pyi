from collections.abc import Callable
from typing import Any, Literal

from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)

_Mode = Literal["connectivity", "distance"]
_Weights = Literal["uniform", "distance"] | Callable[[NDArray[Any]], NDArray[Any]] | None

class _NeighborsBase(BaseEstimator):
    n_samples_fit_: int
    effective_metric_: str
    n_features_in_: int
    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any: ...
    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: _Mode = "connectivity"
    ) -> csr_matrix: ...

class NearestNeighbors(_NeighborsBase):
    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        radius: float = 1.0,
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
    ) -> None: ...
    def fit(self, X: Any, y: Any = None) -> NearestNeighbors: ...
    def radius_neighbors(
        self,
        X: Any = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any: ...
    def radius_neighbors_graph(
        self,
        X: Any = None,
        radius: float | None = None,
        mode: _Mode = "connectivity",
        sort_results: bool = False,
    ) -> csr_matrix: ...

class KNeighborsTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, _NeighborsBase
):
    def __init__(
        self,
        *,
        mode: _Mode = "distance",
        n_neighbors: int = 5,
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
    ) -> None: ...
    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer: ...
    def transform(self, X: Any) -> csr_matrix: ...
    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix: ...

class _Predictor(_NeighborsBase):
    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: _Weights = "uniform",
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
    ) -> None: ...

class KNeighborsClassifier(ClassifierMixin, _Predictor):
    classes_: Any
    outputs_2d_: bool
    def fit(self, X: Any, y: Any) -> KNeighborsClassifier: ...
    def predict(self, X: Any) -> NDArray[Any]: ...
    def predict_proba(self, X: Any) -> Any: ...

class KNeighborsRegressor(RegressorMixin, _Predictor):
    def fit(self, X: Any, y: Any) -> KNeighborsRegressor: ...
    def predict(self, X: Any) -> NDArray[Any]: ...
