"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from sparsek.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    NearestNeighbors,
)

ESTIMATORS = [KNeighborsClassifier, KNeighborsRegressor, KNeighborsTransformer, NearestNeighbors]
# Checks that do not apply, as to scikit-learn's own classes of these names.
SKIPPED = {
    KNeighborsClassifier: {
        "check_classifiers_multilabel_output_format_decision_function": (
            "KNeighborsClassifier does not have a decision_function method."
        )
    }
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_check_estimator(estimator):
    results = check_estimator(estimator(device="cpu"), on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    skipped = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "skipped"}
    assert skipped == SKIPPED.get(estimator, {})
