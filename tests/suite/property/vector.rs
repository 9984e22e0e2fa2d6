//! Random vector selections: every subrange size and selection equals the oracle.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use sparsek_kernels::topk::{
    Construction, Filter, Finish, Selection, Subrange, VectorOptions, VectorStrategy,
};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::{Dtype, Element},
    runner::Outcome,
    with_dtype,
};

use super::common::{Plan, check_requests};
use crate::vector::selections::VectorCheck;

#[derive(Clone, Debug)]
struct Request {
    dtype: Dtype,
    length: usize,
    distribution: Distribution,
    seed: u64,
    options: VectorOptions,
}

fn request() -> impl Strategy<Value = Request> {
    let length = prop_oneof![1 => 1usize..100, 3 => 100usize..20_000, 1 => 20_000usize..100_000];
    // Mostly small k relative to the length.
    let fraction = prop_oneof![4 => 0.0f64..0.02, 1 => 0.0f64..=1.0];
    let subrange = prop_oneof![
        2 => Just(Subrange::Auto),
        1 => Just(Subrange::Whole),
        4 => (0u32..12).prop_map(Subrange::Exponent),
    ];
    let selection = select(Selection::ALL.to_vec());
    let filter = select(vec![Filter::Auto, Filter::On, Filter::Off]);
    let what = (select(Dtype::ALL.to_vec()), select(Distribution::ALL.to_vec()), any::<u64>());
    let construction = select(vec![Construction::Planes, Construction::Staged]);
    let how = (
        subrange,
        1usize..=4,
        construction,
        selection,
        (filter, select(Finish::ALL.to_vec())),
        any::<(bool, bool)>(),
    );
    (length, fraction, what, how).prop_map(|(length, fraction, what, how)| {
        let (dtype, distribution, seed) = what;
        let (subrange, delegates, construction, selection, ends, (largest, sorted)) = how;
        let (filter, finish) = ends;
        let k = (fraction * length as f64).ceil() as usize;
        Request {
            dtype,
            length,
            distribution,
            seed,
            options: VectorOptions {
                largest,
                sorted,
                strategy: VectorStrategy {
                    subrange,
                    delegates,
                    construction,
                    selection,
                    filter,
                    finish,
                    ..VectorStrategy::default()
                },
                ..VectorOptions::new(k)
            },
        }
    })
}

pub fn property(backend: &Backend, plan: Plan) -> Outcome {
    let vectors = RefCell::new(VectorCheck::new(backend));
    // A request is only one launch here.
    let requests = plan.requests.saturating_mul(8);
    let plan = Plan { requests, ..plan };
    check_requests(plan, request(), |request| {
        let vectors = &mut vectors.borrow_mut();
        with_dtype!(request.dtype, T => check::<T>(vectors, &request))
    })?;
    vectors.into_inner().end()
}

fn check<T: Element>(vectors: &mut VectorCheck, request: &Request) -> TestCaseResult {
    let before = vectors.inner.passed;
    let matrix = Matrix::<T>::of(request.distribution, 1, request.length, request.seed);
    vectors.vector(&matrix, &request.options).map_err(TestCaseError::fail)?;
    if vectors.inner.passed == before {
        return Err(TestCaseError::reject("refused"));
    }
    Ok(())
}
