//! The native half of the Python package `sparsek`.
//!
//! The package's Python files check and convert arguments; this module takes contiguous buffers,
//! computes on a worker thread while Python runs, and returns arrays without a copy.

mod array;
mod device;
mod error;
#[cfg(feature = "cuda")]
mod exchange;
mod matrix;
mod search;
mod topk;
mod worker;

use pyo3::prelude::*;

/// The native half of `sparsek`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        array::Array,
        device::devices,
        matrix::{Matrix, pairwise_distances, searches_dense},
        search::Index,
        topk::{topk, topk_mask},
    };

    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use crate::exchange::DeviceArray;

    /// Most rows, columns and entries of a matrix.
    #[pymodule_export]
    const MAX_ENTRIES: usize = sparsek::sparse::MAX_ENTRIES;

    /// Whether CUDA is linked.
    #[pyo3::pyfunction]
    fn has_cuda() -> bool {
        cfg!(feature = "cuda")
    }

    /// The name of a metric that an alias stands for.
    #[pyo3::pyfunction]
    fn canonical(metric: &str) -> pyo3::PyResult<String> {
        Ok(crate::matrix::parse(metric)?.to_string())
    }

    /// Names of the metrics and their aliases.
    #[pyo3::pyfunction]
    fn metrics() -> (Vec<&'static str>, Vec<(&'static str, &'static str)>) {
        use sparsek::distance::Metric;
        let names = Metric::ALL.iter().map(|metric| metric.name()).collect();
        let aliases = Metric::ALIASES.iter().map(|&(alias, metric)| (alias, metric.name()));
        (names, aliases.collect())
    }
}
