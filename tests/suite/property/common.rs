//! Number, seed and runner of random requests.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner};

#[derive(clap::Args, Clone, Copy)]
pub struct Plan {
    /// Random requests per kernel property. Tensors run half as many, Flex many more (it compiles
    /// nothing).
    #[arg(long = "property-requests", value_name = "N", default_value_t = 4)]
    pub requests: u32,
    /// Seed of the requests.
    #[arg(long = "property-seed", value_name = "SEED", default_value_t = 18)]
    pub seed: u64,
}

/// Checks `plan.requests` random requests; rejected requests do not count.
pub fn check_requests<S: Strategy>(
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
        Err(TestError::Fail(reason, request)) => {
            Err(format!("{reason}\nseed {}, minimal failing request: {request:#?}", plan.seed))
        }
    }
}
