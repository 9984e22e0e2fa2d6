//! Random requests to top-k, distances and compressed SpMM against the oracle; failures are shrunk.

mod distance;
mod kernel;
mod request;
mod spmm;
mod tensor;
mod vector;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner};
use sparsek_kernels::topk::ROUTINES;
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::Cases,
};

#[derive(clap::Args, Clone, Copy)]
pub struct Plan {
    /// Random requests per kernel property. Tensors run half as many, Flex many more (it compiles
    /// nothing).
    #[arg(long = "property-requests", value_name = "N", default_value_t = 4)]
    requests: u32,
    /// Seed of the requests.
    #[arg(long = "property-seed", value_name = "SEED", default_value_t = 18)]
    seed: u64,
}

pub fn add(cases: &mut Cases, backend: &Backend, plan: Plan) {
    let requests = match backend.kind {
        Kind::Flex => plan.requests.saturating_mul(16),
        _ => plan.requests.div_ceil(2),
    };
    let tensors = Plan { requests, ..plan };
    cases.add(backend, "tensor/topk/property", move |b| {
        tensor::property(b, tensors)
    });
    cases.add(backend, "tensor/distance/property", move |b| {
        let requests = plan.requests.saturating_mul(8);
        distance::property(b, Plan { requests, ..plan })
    });
    cases.add(backend, "tensor/spmm/compressed/property", move |b| {
        spmm::property(b, tensors)
    });
    if backend.client.is_none() {
        return;
    }
    cases.add(backend, "kernel/vector/property", move |b| {
        vector::property(b, plan)
    });
    cases.add(backend, "kernel/topk/auto/property", move |b| {
        kernel::property(b, plan, None)
    });
    for (i, &routine) in ROUTINES.iter().enumerate() {
        // A distinct seed per routine.
        let seed = plan.seed.wrapping_add(1 + i as u64);
        let plan = Plan { seed, ..plan };
        let name = format!("kernel/topk/{}/property", routine.name());
        cases.add(backend, name, move |b| {
            kernel::property(b, plan, Some(routine))
        });
    }
}

/// Checks `plan.requests` random requests; rejected requests do not count.
fn check_requests<S: Strategy>(
    plan: Plan,
    requests: S,
    check: impl Fn(S::Value) -> TestCaseResult,
) -> Result<(), String> {
    let config = Config {
        cases: plan.requests,
        max_global_rejects: plan.requests.saturating_mul(8),
        rng_seed: RngSeed::Fixed(plan.seed),
        failure_persistence: None,
        max_shrink_iters: 4096,
        max_shrink_time: 120_000,
        ..Config::default()
    };
    match TestRunner::new(config).run(&requests, check) {
        // Too many rejections: the case reports whether any ran.
        Ok(()) | Err(TestError::Abort(_)) => Ok(()),
        Err(TestError::Fail(reason, request)) => Err(format!(
            "{reason}\nseed {}, minimal failing request: {request:#?}",
            plan.seed
        )),
    }
}
