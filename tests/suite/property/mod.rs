//! Random requests to top-k, distances and compressed SpMM against the oracle; failures are shrunk.

mod common;
mod distance;
mod kernel;
mod request;
mod spmm;
mod tensor;
mod vector;

pub use common::Plan;

use sparsek_kernels::topk::ROUTINES;
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::Cases,
};

pub fn add(cases: &mut Cases, backend: &Backend, plan: Plan) {
    let requests = match backend.kind {
        Kind::Flex => plan.requests.saturating_mul(16),
        _ => plan.requests.div_ceil(2),
    };
    let tensors = Plan { requests, ..plan };
    cases.add(backend, "tensor/topk/property", move |b| tensor::property(b, tensors));
    cases.add(backend, "tensor/distance/property", move |b| {
        let requests = plan.requests.saturating_mul(8);
        distance::property(b, Plan { requests, ..plan })
    });
    cases.add(backend, "tensor/spmm/compressed/property", move |b| spmm::property(b, tensors));
    if backend.client.is_none() {
        return;
    }
    cases.add(backend, "kernel/vector/property", move |b| vector::property(b, plan));
    cases.add(backend, "kernel/topk/auto/property", move |b| kernel::property(b, plan, None));
    for (i, &routine) in ROUTINES.iter().enumerate() {
        // A distinct seed per routine.
        let seed = plan.seed.wrapping_add(1 + i as u64);
        let plan = Plan { seed, ..plan };
        let name = format!("kernel/topk/{}/property", routine.name());
        cases.add(backend, name, move |b| kernel::property(b, plan, Some(routine)));
    }
}
