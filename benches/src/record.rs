//! The lines of a record, as docs/benchmarks.md describes them.

use serde::{Deserialize, Serialize};

/// One line of a record.
#[derive(Serialize, Deserialize)]
pub struct Record {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    pub method: String,
    pub form: String,
    pub dist: String,
    pub ms: f64,
    pub first_ms: f64,
    pub floor_ms: f64,
    pub copy_gbps: f64,
    pub checked: usize,
}
