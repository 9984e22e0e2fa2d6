//! Random products with compressed rows: any pattern, width, k and factors equal the oracle.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sparsek_tests::{
    backend::Backend,
    data::normals,
    oracle::spmm::Csr,
    runner::{Outcome, Verdict},
};

use super::common::{Plan, check_requests};
use crate::{
    spmm::compressed_rows::agrees,
    spmm::problem::{Factors, Problem},
};

#[derive(Clone, Debug)]
struct Request {
    cols: usize,
    rows: Vec<Vec<u32>>,
    width: usize,
    k: usize,
    factors: Factors,
    seed: u64,
}

fn request() -> impl Strategy<Value = Request> {
    let cols = prop_oneof![1 => Just(1usize), 4 => 2usize..50];
    let width = prop_oneof![3 => 1usize..70, 2 => 70usize..300, 1 => 300usize..=1024];
    let how = (select(Factors::ALL.to_vec()), any::<u64>());
    (cols, width, how).prop_flat_map(|(cols, width, (factors, seed))| {
        let degree = prop_oneof![1 => Just(0usize), 6 => 1usize..12, 1 => 12usize..150];
        let row = degree.prop_flat_map(move |degree| vec(0..cols as u32, degree));
        let k = prop_oneof![1 => Just(1usize), 4 => 1..=width, 1 => Just(width)];
        (vec(row, 0..40), k).prop_map(move |(rows, k)| Request {
            cols,
            rows,
            width,
            k,
            factors,
            seed,
        })
    })
}

impl Request {
    fn csr(&self) -> Csr {
        let indices: Vec<u32> = self.rows.concat();
        let mut indptr = vec![0];
        for row in &self.rows {
            indptr.push(indptr[indptr.len() - 1] + row.len() as u32);
        }
        Csr {
            rows: self.rows.len(),
            cols: self.cols,
            indptr,
            weights: normals(indices.len(), self.seed),
            indices,
        }
    }
}

pub fn property(backend: &Backend, plan: Plan) -> Outcome {
    check_requests(plan, request(), |request| {
        let sizes = [request.width, request.k];
        let problem = Problem::of::<f32>(&request.csr(), sizes, request.factors);
        agrees::<f32>(backend, &problem, request.factors).map_err(TestCaseError::fail)
    })?;
    Ok(Verdict::Passed)
}
