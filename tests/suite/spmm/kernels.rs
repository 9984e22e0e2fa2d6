//! SpMM kernels with compressed rows: every routine, the partition, determinism.

use burn::tensor::{Tensor, TensorData};
use bytemuck::cast_slice;
use cubecl::{client::Client, ir::ElemType, prelude::*, server::Handle};
use sparsek::sparse::{Adjacency, Scaling, sparse_topk, spmm_compressed_with, spmm_with};
use sparsek::topk::Method;
use sparsek_kernels::KernelError;
use sparsek_kernels::spmm::{
    self as kernel, Compressed, Csr, MAX_ENTRIES, Operand, Partition, ROUTINES, Routine, Scales,
    Weights,
};
use sparsek_kernels::topk::{Rows, TopkOptions};
use sparsek_tests::{
    backend::Backend,
    data::normals,
    oracle::spmm::Bounded,
    runner::{Cases, Outcome, Verdict},
    sparse::pattern,
};

use crate::{
    kernels::refusal,
    spmm::problem::{Factors, PatternKind, Problem},
};

const REPEATS: usize = 20;

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/determinism/spmm/compressed", determinism);
    if backend.client.is_none() {
        return;
    }
    for routine in ROUTINES {
        for [width, k] in
            [[1, 1], [7, 3], [33, 9], [256, 16], [256, 32], [300, 20], [300, 64], [130, 130]]
        {
            for shape in [PatternKind::Ragged, PatternKind::Cut] {
                let name = format!("kernel/spmm/{}/{shape:?}/{width}/{k}", routine.name());
                cases.add(backend, name.to_lowercase(), move |b| {
                    forced(b, routine, shape, [width, k])
                });
            }
        }
    }
    cases.check(backend, "kernel/spmm/partition", partition);
}

struct OnDevice {
    indptr: Handle,
    indices: Handle,
    weights: Handle,
    partition: Partition,
    size: [usize; 3],
}

impl OnDevice {
    fn new(client: &Client, problem: &Problem) -> Result<Self, String> {
        let csr = &problem.effective;
        let upload = |data: &[u32]| {
            client.create_from_slice(cast_slice(if data.is_empty() { &[0] } else { data }))
        };
        let weights: Vec<f32> = csr.weights.iter().map(|&w| w as f32).collect();
        let (indptr, indices) = (upload(&csr.indptr), upload(&csr.indices));
        let size = [csr.rows, csr.cols, csr.indices.len()];
        let own = pattern_of(&indptr, &indices, size);
        Ok(Self {
            partition: Partition::new(client, &own).map_err(|e| e.to_string())?,
            weights: client.create_from_slice(cast_slice(&weights)),
            indptr,
            indices,
            size,
        })
    }

    fn operand(&self) -> Operand<'_> {
        Operand {
            csr: pattern_of(&self.indptr, &self.indices, self.size),
            partition: &self.partition,
            weights: Some(Weights { values: &self.weights, entries: None }),
            scales: Scales::default(),
        }
    }
}

fn pattern_of<'a>(
    indptr: &'a Handle,
    indices: &'a Handle,
    [rows, cols, nnz]: [usize; 3],
) -> Csr<'a> {
    Csr { indptr, indices, rows, cols, nnz }
}

struct Selected {
    values: Handle,
    columns: Handle,
    index: ElemType,
}

impl Selected {
    fn new(client: &Client, problem: &Problem, [width, k]: [usize; 2]) -> Result<Self, String> {
        let rows = problem.effective.cols;
        let x: Vec<f32> = problem.x.iter().map(|&x| x as f32).collect();
        let x = client.create_from_slice(cast_slice(&x));
        let rows = Rows::contiguous(x, f32::elem_type_native(), rows, width);
        let compressed = sparsek_kernels::topk::compress(client, &rows, &TopkOptions::new(k));
        let (selected, index) = compressed.map_err(|e| e.to_string())?;
        Ok(Self { values: selected.values, columns: selected.indices, index })
    }

    fn compressed(&self, [width, k]: [usize; 2]) -> Compressed<'_> {
        Compressed {
            values: &self.values,
            columns: &self.columns,
            dtype: f32::elem_type_native(),
            index: self.index,
            k,
            width,
        }
    }
}

fn compare(client: &Client, found: Handle, expected: &Bounded) -> Result<(), String> {
    let bytes = client.read_one(found).map_err(|e| format!("{e:?}"))?;
    let found: Vec<f64> = cast_slice::<u8, f32>(&bytes).iter().map(|&x| f64::from(x)).collect();
    expected.check(&found, f64::from(f32::EPSILON))
}

fn forced(backend: &Backend, routine: Routine, shape: PatternKind, sizes: [usize; 2]) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let problem = Problem::new::<f32>(shape, sizes, Factors::Weights);
    let matrix = OnDevice::new(client, &problem)?;
    let selected = Selected::new(client, &problem, sizes)?;
    let x = selected.compressed(sizes);
    match kernel::spmm_compressed(client, &matrix.operand(), &x, Some(routine)) {
        Ok(y) => {
            compare(client, y, &problem.effective.spmm(&problem.masked, sizes[0]))?;
            Ok(Verdict::Passed)
        }
        Err(error) => refusal(&error).map(Verdict::Skipped).ok_or_else(|| error.to_string()),
    }
}

/// Items cover each row once, sorted by length; split rows are also listed separately.
fn partition(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("a client");
    let entries = MAX_ENTRIES + 1;
    let spare = client.empty(4);
    let many = Partition::new(client, &pattern_of(&spare, &spare, [1, 1, entries]));
    let refused = KernelError::TooManyEntries { entries, limit: MAX_ENTRIES };
    if many.as_ref().err() != Some(&refused) {
        return Err(format!("{entries} entries: {many:?}"));
    }
    for shape in [
        PatternKind::Ragged,
        PatternKind::Empty,
        PatternKind::Hub,
        PatternKind::Nothing,
        PatternKind::Cut,
    ] {
        let problem = Problem::new::<f32>(shape, [4, 1], Factors::Ones);
        let matrix = OnDevice::new(client, &problem)?;
        let bytes =
            client.read_one(matrix.partition.handle().clone()).map_err(|e| format!("{e:?}"))?;
        let csr = &problem.csr;
        let items: Vec<[i32; 4]> = cast_slice::<u8, i32>(&bytes)
            .chunks_exact(4)
            .map(|item| [item[0], item[1], item[2], item[3]])
            .collect();
        let mut found: Vec<Vec<[i32; 3]>> = vec![Vec::new(); csr.rows];
        let most = (csr.indices.len() / 4096).next_power_of_two().clamp(128, 1024);
        let there = csr.rows + 2 * (csr.indices.len() / (most + 1));
        let mut longest = i32::MAX;
        for &[start, end, row, slot] in items[..there].iter().filter(|item| item[2] >= 0) {
            // Lengths within a bucket differ by less than a fourth, parts of a row by one at most;
            // llvmpipe does not split rows.
            let whole = csr.indptr[row as usize + 1] as usize - csr.indptr[row as usize] as usize;
            let length = whole.div_ceil(whole.div_ceil(most).max(1)) as i32;
            if !backend.is_llvmpipe()
                && (end - start > length
                    || end - start < length - 1
                    || length * 4 > longest.saturating_mul(5))
            {
                return Err(format!("{shape:?}: row {row} from {start} to {end} after {longest}"));
            }
            longest = longest.min(length);
            found[row as usize].push([slot, start, end]);
        }
        let mut cut = 0;
        for (row, parts) in found.iter_mut().enumerate() {
            parts.sort_unstable();
            let [start, end] = [csr.indptr[row] as i32, csr.indptr[row + 1] as i32];
            let ends: Vec<i32> = parts.iter().map(|part| part[2]).collect();
            let starts: Vec<i32> = parts.iter().map(|part| part[1]).collect();
            if starts.first() != Some(&start)
                || ends.last() != Some(&end)
                || starts[1..] != ends[..ends.len() - 1]
            {
                return Err(format!("{shape:?}: row {row} is {parts:?}"));
            }
            let whole = parts.len() == 1 && parts[0][0] == -1;
            let listed = items[there..]
                .iter()
                .any(|listed| listed[..3] == [row as i32, parts[0][0], parts.len() as i32]);
            if !whole && !listed {
                return Err(format!("{shape:?}: split row {row} is not listed"));
            }
            cut += usize::from(!whole);
        }
        let listed = items[there..].iter().filter(|listed| listed[0] >= 0).count();
        if listed != cut {
            return Err(format!("{shape:?}: {listed} split rows are listed instead of {cut}"));
        }
    }
    Ok(())
}

fn determinism(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let problem = Problem::new::<f32>(PatternKind::Cut, [64, 8], Factors::All);
    let csr = &problem.csr;
    let tensor = |n: usize, seed: u64| -> Tensor<1> {
        let data: Vec<f32> = normals(n, seed).iter().map(|&x| x as f32).collect();
        Tensor::from_data(TensorData::new(data, [n]), &device)
    };
    let mut first = None;
    for run in 0..REPEATS {
        // Build the partition anew in each run.
        let adjacency = Adjacency::new(&pattern(csr), &device);
        let x = tensor(csr.cols * 64, 1).reshape([csr.cols, 64]).require_grad();
        let weights = tensor(csr.indices.len(), 2).require_grad();
        let scaling = Scaling::default()
            .with_weights(weights.clone())
            .with_rows(tensor(csr.rows, 3))
            .with_cols(tensor(csr.cols, 4));
        let kept = sparse_topk(x.clone(), 8, Method::Exact);
        let y = spmm_compressed_with(&adjacency, &kept, &scaling);
        let z = spmm_with(&adjacency, x.clone(), &scaling);
        let gradients = (y.clone() * y.clone() + z.clone() * z.clone()).backward();
        let dx = x.grad(&gradients).ok_or("no gradient for x")?;
        let dw = weights.grad(&gradients).ok_or("no gradient for the weights")?;
        let bits = [y, z, dx].map(|tensor| tensor.into_data().as_bytes().to_vec());
        let found = (bits, dw.into_data().as_bytes().to_vec());
        match &first {
            None => first = Some(found),
            Some(first) if *first == found => {}
            Some(_) => return Err(format!("run {run} differs from the first")),
        }
    }
    Ok(())
}
