//! The shared-memory gradient of compressed rows: any column block size, same bits in every run.

use burn::tensor::Tensor;
use bytemuck::cast_slice;
use cubecl::{client::Client, prelude::*, server::Handle};
use sparsek_kernels::{
    KernelError,
    spmm::{
        self as kernel, ColumnBlocks, Compressed, Csr, Operand, Partition, Scales,
        column_blocks_pay,
    },
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    element::Element,
    oracle::spmm,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    kernels::refusal,
    spmm::problem::{Factors, PatternKind, Problem, product_and_gradient},
};

const REPEATS: usize = 10;

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/spmm/column-blocks", tensors);
    if backend.client.is_none() {
        return;
    }
    for shape in PatternKind::ALL {
        for [width, k, most] in [
            [1, 1, 32],
            [7, 3, 64],
            [33, 9, 512],
            [256, 16, 32],
            [300, 64, 512],
            [130, 130, 96],
            [64, 0, 32],
        ] {
            let name = format!("kernel/spmm/shared/{shape:?}/{width}/{k}/{most}");
            cases.add(backend, name.to_lowercase(), move |b| {
                one::<f32>(b, &Case::new::<f32>(shape, [width, k], most))
            });
        }
    }
    let half =
        |b: &Backend| one::<half::f16>(b, &Case::new::<half::f16>(PatternKind::Cut, [96, 20], 64));
    cases.add(backend, "kernel/spmm/shared/f16", half);
    let brain = |b: &Backend| {
        one::<half::bf16>(b, &Case::new::<half::bf16>(PatternKind::Hub, [96, 20], 64))
    };
    cases.add(backend, "kernel/spmm/shared/bf16", brain);
    cases.add(backend, "kernel/spmm/shared/determinism", determinism);
    cases.check(backend, "kernel/spmm/shared/refusals", refusals);
}

struct Case {
    problem: Problem,
    most: usize,
}

impl Case {
    fn new<T: Element>(shape: PatternKind, sizes: [usize; 2], most: usize) -> Self {
        let problem = Problem::new::<T>(shape, sizes, Factors::Some);
        Self { problem, most }
    }
}

/// The transposed problem on the device: ascending columns, row and column factors swapped.
struct OnDevice {
    indptr: Handle,
    indices: Handle,
    rows: Handle,
    cols: Handle,
    columns: Handle,
    upstream: Handle,
    size: [usize; 3],
}

impl OnDevice {
    fn new<T: Element>(client: &Client, problem: &Problem) -> Self {
        let csr = &problem.csr;
        let mut transposed: Vec<Vec<u32>> = vec![Vec::new(); csr.cols];
        for (row, column, _) in csr.entries() {
            transposed[column].push(row as u32);
        }
        let mut indptr = vec![0u32];
        for row in &transposed {
            indptr.push(indptr[indptr.len() - 1] + row.len() as u32);
        }
        let words = |data: Vec<u32>| {
            client.create_from_slice(cast_slice(if data.is_empty() { &[0] } else { &data }))
        };
        let floats = |data: &[f64]| {
            let data: Vec<f32> = data.iter().map(|&x| x as f32).collect();
            client.create_from_slice(cast_slice(&data))
        };
        let selected = problem.selected.iter().flatten();
        let upstream: Vec<T> = problem.upstream.iter().map(|&x| T::of(x)).collect();
        Self {
            indptr: words(indptr),
            indices: words(transposed.concat()),
            rows: floats(&problem.cols),
            cols: floats(&problem.rows),
            columns: words(selected.map(|&column| column as u32).collect()),
            upstream: client.create_from_slice(cast_slice(&upstream)),
            size: [csr.cols, csr.rows, csr.indices.len()],
        }
    }

    fn csr(&self) -> Csr<'_> {
        let [rows, cols, nnz] = self.size;
        Csr { indptr: &self.indptr, indices: &self.indices, rows, cols, nnz }
    }

    fn gradient<T: Element>(
        &self,
        client: &Client,
        problem: &Problem,
        most: usize,
    ) -> Result<Handle, KernelError> {
        let csr = self.csr();
        let partition = Partition::new(client, &csr)?;
        let column_blocks = ColumnBlocks::new(client, &csr, most)?;
        let transposed = Operand {
            csr,
            partition: &partition,
            weights: None,
            scales: Scales { rows: Some(&self.rows), cols: Some(&self.cols) },
        };
        let x = Compressed {
            values: &self.columns,
            columns: &self.columns,
            dtype: T::elem_type(),
            index: u32::elem_type_native(),
            k: problem.k,
            width: problem.width,
        };
        kernel::gradient_shared(client, &transposed, &self.upstream, &x, &column_blocks)
    }
}

fn one<T: Element>(backend: &Backend, case: &Case) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let problem = &case.problem;
    let on_device = OnDevice::new::<T>(client, problem);
    match on_device.gradient::<T>(client, problem, case.most) {
        Ok(gradient) => {
            let found = read::<T>(client, gradient)?;
            let expected = problem.gradient_of_selected();
            let epsilon = match T::elem_type().size() {
                2 => 2f64.powi(-8),
                _ => f64::from(f32::EPSILON),
            };
            expected.check(&found[..expected.values.len()], epsilon)?;
            Ok(Verdict::Passed)
        }
        Err(error) => refusal(&error).map(Verdict::Skipped).ok_or_else(|| error.to_string()),
    }
}

fn read<T: Element>(client: &Client, handle: Handle) -> Result<Vec<f64>, String> {
    let bytes = client.read_one(handle).map_err(|e| format!("{e:?}"))?;
    let values = cast_slice::<u8, T>(&bytes).iter();
    Ok(values.map(|x| x.wide_f64()).collect())
}

/// Enough entries for devices with planes to choose column blocks; forward and backward.
fn tensors(backend: &Backend) -> Result<(), String> {
    let (rows, cols, each) = (2100, 2050, 2000);
    let mut random = Random::new(37);
    let indices: Vec<u32> = (0..rows * each).map(|_| random.below(cols) as u32).collect();
    let csr = spmm::Csr {
        rows,
        cols,
        indptr: (0..=rows).map(|row| (row * each) as u32).collect(),
        weights: vec![1.0; indices.len()],
        indices,
    };
    let [width, k] = [16, 4];
    let problem = Problem::of::<f32>(&csr, [width, k], Factors::Some);
    let [y, dx] = product_and_gradient(backend, &problem, Factors::Some)?;
    let numbers = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
    let epsilon = f64::from(f32::EPSILON);
    let forward = problem.effective.spmm(&problem.masked, width);
    forward.check(&numbers(y), epsilon)?;
    problem.gradient().check(&numbers(dx), epsilon)
}

/// Many chunks of entries, which units and cubes process in any order.
fn determinism(backend: &Backend) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let mut random = Random::new(31);
    let (rows, cols) = (3000, 2900);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let each = if row % 100 == 0 { 900 } else { 60 };
        indices.extend((0..each).map(|_| random.below(cols) as u32));
        indptr.push(indices.len() as u32);
    }
    let csr = spmm::Csr { rows, cols, weights: vec![1.0; indices.len()], indptr, indices };
    let problem = Problem::of::<f32>(&csr, [64, 32], Factors::Some);
    let on_device = OnDevice::new::<f32>(client, &problem);
    let mut first = None;
    for run in 0..REPEATS {
        let gradient = match on_device.gradient::<f32>(client, &problem, 1024) {
            Ok(gradient) => gradient,
            Err(error) => {
                let refused = refusal(&error).map(Verdict::Skipped);
                return refused.ok_or_else(|| error.to_string());
            }
        };
        let bytes = client.read_one(gradient).map_err(|e| format!("{e:?}"))?;
        match &first {
            None => {
                let found: Vec<f64> =
                    cast_slice::<u8, f32>(&bytes).iter().map(|&x| f64::from(x)).collect();
                let expected = problem.gradient_of_selected();
                expected.check(&found, f64::from(f32::EPSILON))?;
                first = Some(bytes.to_vec());
            }
            Some(first) if first[..] == bytes[..] => {}
            Some(_) => return Err(format!("run {run} differs from the first")),
        }
    }
    Ok(Verdict::Passed)
}

/// Column blocks that are too wide, and the conditions of `pays`.
fn refusals(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("a client");
    let problem = Problem::new::<f32>(PatternKind::Ragged, [8, 2], Factors::Ones);
    let on_device = OnDevice::new::<f32>(client, &problem);
    let room = ColumnBlocks::max_columns(client);
    for most in [0, room + 1] {
        match ColumnBlocks::new(client, &on_device.csr(), most) {
            Ok(_) => return Err(format!("column blocks of {most} columns were accepted")),
            Err(error) if room > 0 && refusal(&error).is_none() => return Err(error.to_string()),
            Err(_) => {}
        }
    }
    let many = 1 << 22;
    let pays = [
        ([many / 24, 100, many], 100, true),
        ([many / 24, 100, many - 1], 100, false),
        ([many / 23, 100, many], 100, false),
        ([many / 24, 100, many], 99, false),
        ([10, 2400, many], 100, true),
        ([10, 2401, many], 100, false),
        ([10, 100, many], 0, false),
        ([0, 0, 0], 100, false),
    ];
    for (size, most, expected) in pays {
        if column_blocks_pay(size, most) != expected {
            return Err(format!("{size:?} by {most}: not {expected}"));
        }
    }
    Ok(())
}
