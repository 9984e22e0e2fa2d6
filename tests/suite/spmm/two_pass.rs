//! The two-pass gradient of compressed rows: same bits whatever the size of its parts.

use bytemuck::cast_slice;
use cubecl::{client::Client, server::Handle};
use sparsek_kernels::{
    KernelError,
    spmm::{self as kernel, Compressed, Csr, Operand, Partition, Product, Scales, Weights},
};
use sparsek_tests::{
    backend::Backend,
    data::{Random, normals},
    element::Element,
    oracle::spmm,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    kernels::refusal,
    spmm::problem::{Factors, PatternKind, Problem, product_and_gradient},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/spmm/two-pass", tensors);
    if backend.client.is_none() {
        return;
    }
    for shape in PatternKind::ALL {
        for [width, k] in [[1, 1], [7, 3], [33, 9], [256, 16], [300, 64], [1024, 250], [64, 0]] {
            let name = format!("kernel/spmm/two-pass/{shape:?}/{width}/{k}");
            cases.add(backend, name.to_lowercase(), move |b| {
                one::<f32>(b, shape, [width, k], Factors::All)
            });
        }
    }
    for factors in Factors::ALL {
        let name = format!("kernel/spmm/two-pass/factors/{factors:?}");
        cases.add(backend, name.to_lowercase(), move |b| {
            one::<f32>(b, PatternKind::Cut, [256, 32], factors)
        });
    }
    cases.add(backend, "kernel/spmm/two-pass/f64", |b| {
        one::<f64>(b, PatternKind::Cut, [96, 20], Factors::All)
    });
    cases.check(backend, "kernel/spmm/two-pass/f16", |b| {
        match one::<half::f16>(b, PatternKind::Cut, [96, 20], Factors::Ones) {
            Ok(Verdict::Skipped(_)) => Ok(()),
            _ => Err("f16 is not refused".into()),
        }
    });
}

/// A gradient large enough for devices with planes to choose the two-pass routine.
fn tensors(backend: &Backend) -> Result<(), String> {
    let (rows, cols, each) = (1 << 17, 2000, 3);
    let mut random = Random::new(41);
    let indices: Vec<u32> = (0..rows * each).map(|_| random.below(cols) as u32).collect();
    let csr = spmm::Csr {
        rows,
        cols,
        indptr: (0..=rows).map(|row| (row * each) as u32).collect(),
        weights: normals(indices.len(), 43),
        indices,
    };
    let [width, k] = [256, 20];
    let problem = Problem::of::<f32>(&csr, [width, k], Factors::All);
    let [_, dx] = product_and_gradient(backend, &problem, Factors::All)?;
    let found: Vec<f64> = dx.into_data().iter::<f64>().collect();
    problem.gradient().check(&found, f64::from(f32::EPSILON))
}

struct OnDevice {
    indptr: Handle,
    indices: Handle,
    entries: Handle,
    rows: Handle,
    cols: Handle,
    partition: Partition,
    size: [usize; 3],
}

impl OnDevice {
    fn new<T: Element>(
        client: &Client,
        lines: &[Vec<[u32; 2]>],
        [rows, cols]: [&[f64]; 2],
    ) -> Result<Self, KernelError> {
        let mut offsets = vec![0u32];
        for line in lines {
            offsets.push(offsets[offsets.len() - 1] + line.len() as u32);
        }
        let of_entries = |which: usize| {
            let words = lines.iter().flatten().map(|entry| entry[which]).collect();
            upload(client, words)
        };
        let mut on_device = Self {
            indptr: upload(client, offsets),
            indices: of_entries(0),
            entries: of_entries(1),
            rows: numbers::<T>(client, rows),
            cols: numbers::<T>(client, cols),
            partition: Partition::from_handle(client.empty(4), 0, 0),
            size: [lines.len(), cols.len(), lines.iter().map(Vec::len).sum::<usize>()],
        };
        on_device.partition = Partition::new(client, &on_device.csr())?;
        Ok(on_device)
    }

    fn csr(&self) -> Csr<'_> {
        let [rows, cols, nnz] = self.size;
        Csr { indptr: &self.indptr, indices: &self.indices, rows, cols, nnz }
    }

    fn operand<'a>(&'a self, weights: Option<Weights<'a>>, [rows, cols]: [bool; 2]) -> Operand<'a> {
        Operand {
            csr: self.csr(),
            partition: &self.partition,
            weights,
            scales: Scales { rows: rows.then_some(&self.rows), cols: cols.then_some(&self.cols) },
        }
    }
}

fn upload(client: &Client, data: Vec<u32>) -> Handle {
    client.create_from_slice(cast_slice(if data.is_empty() { &[0] } else { &data }))
}

fn numbers<T: Element>(client: &Client, data: &[f64]) -> Handle {
    let mut data: Vec<T> = data.iter().map(|&x| T::of(x)).collect();
    if data.is_empty() {
        data.push(T::of(0.0));
    }
    client.create_from_slice(cast_slice(&data))
}

/// Runs in one part and in small parts; compares with the oracle and bit for bit.
fn one<T: Element>(
    backend: &Backend,
    shape: PatternKind,
    sizes: [usize; 2],
    factors: Factors,
) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let client = backend.client.as_ref().expect("a client");
    let problem = Problem::new::<T>(shape, sizes, factors);
    let csr = &problem.csr;
    let mut lines = vec![Vec::new(); csr.rows];
    let mut transposed = vec![Vec::new(); csr.cols];
    for (number, (row, column, _)) in csr.entries().enumerate() {
        lines[row].push([column as u32, number as u32]);
        transposed[column].push([row as u32, number as u32]);
    }
    let [rows, cols] = [&problem.rows[..], &problem.cols[..]];
    let own = OnDevice::new::<T>(client, &lines, [rows, cols]).map_err(|e| e.to_string())?;
    let transposed =
        OnDevice::new::<T>(client, &transposed, [cols, rows]).map_err(|e| e.to_string())?;
    let weights = numbers::<T>(client, &csr.weights);
    let weighted = |entries| factors.weights().then_some(Weights { values: &weights, entries });
    let scaled = [factors.rows(), factors.cols()];
    let product = Product {
        operand: own.operand(weighted(None), scaled),
        transposed: transposed.operand(weighted(Some(&transposed.entries)), [scaled[1], scaled[0]]),
        entries: &transposed.entries,
        column_blocks: None,
    };
    let selected = problem.selected.iter().flatten();
    let columns = upload(client, selected.map(|&column| column as u32).collect());
    let x = Compressed {
        values: &columns,
        columns: &columns,
        dtype: T::elem_type(),
        index: cubecl::ir::ElemType::UInt(cubecl::ir::UIntKind::U32),
        k: problem.k,
        width: problem.width,
    };
    let upstream = numbers::<T>(client, &problem.upstream);
    let expected = problem.gradient_of_selected();
    let mut first: Option<Vec<f64>> = None;
    // Then 97 entries per part.
    for scratch in [None, Some(97 * problem.k * size_of::<T>())] {
        let gradient = match kernel::gradient_two_pass(client, &product, &upstream, &x, scratch) {
            Ok(gradient) => gradient,
            Err(error) => {
                let refused = refusal(&error).map(Verdict::Skipped);
                return refused.ok_or_else(|| error.to_string());
            }
        };
        let bytes = client.read_one(gradient).map_err(|e| format!("{e:?}"))?;
        let found: Vec<f64> = cast_slice::<u8, T>(&bytes)[..expected.values.len()]
            .iter()
            .map(|x| x.wide_f64())
            .collect();
        let epsilon = match size_of::<T>() {
            8 => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        };
        expected.check(&found, epsilon)?;
        if first.as_ref().is_some_and(|first| *first != found) {
            return Err("small parts give other bits".into());
        }
        first = Some(found);
    }
    Ok(Verdict::Passed)
}
