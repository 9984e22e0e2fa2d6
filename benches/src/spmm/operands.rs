//! Operands on the device: patterns, matrices of seeded numbers, compressed rows.

use bytemuck::cast_slice;
use cubecl::{
    client::Client,
    ir::{AddressType, ElemType},
    prelude::*,
    server::Handle,
};
use sparsek::sparse::Pattern;
use sparsek_kernels::{
    spmm::{Compressed, Csr, Operand, Partition, Scales},
    topk::{Rows, Selected, TopkOptions, compress},
};

pub struct OnDevice {
    indptr: Handle,
    indices: Handle,
    partition: Partition,
    nodes: usize,
    nnz: usize,
}

impl OnDevice {
    pub fn new(client: &Client, graph: &Pattern) -> anyhow::Result<Self> {
        let indptr = client.create_from_slice(cast_slice(graph.indptr()));
        let indices = client.create_from_slice(cast_slice(graph.indices()));
        let (nodes, nnz) = (graph.rows(), graph.nnz());
        let partition = Partition::new(client, &csr(&indptr, &indices, nodes, nnz))?;
        Ok(Self { indptr, indices, partition, nodes, nnz })
    }

    pub fn csr(&self) -> Csr<'_> {
        csr(&self.indptr, &self.indices, self.nodes, self.nnz)
    }

    pub fn operand(&self) -> Operand<'_> {
        Operand {
            csr: self.csr(),
            partition: &self.partition,
            weights: None,
            scales: Scales::default(),
        }
    }
}

fn csr<'a>(indptr: &'a Handle, indices: &'a Handle, nodes: usize, nnz: usize) -> Csr<'a> {
    Csr { indptr, indices, rows: nodes, cols: nodes, nnz }
}

pub const FEATURES: u32 = 17;
pub const UPSTREAM: u32 = 23;

/// A number in [-1, 1) that host and device compute from its position and a seed.
pub fn number(place: usize, seed: u32) -> f32 {
    let mut bits = (place as u32) ^ seed;
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x7feb_352d);
    bits = (bits ^ (bits >> 15)).wrapping_mul(0x846c_a68b);
    bits ^= bits >> 16;
    (bits >> 8) as f32 / 8_388_608.0 - 1.0
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn numbers_kernel<E: Float>(output: &mut [E], seed: u32, #[define(E)] _dtype: ElemType) {
    if ABSOLUTE_POS < output.len() {
        let mut bits = (ABSOLUTE_POS as u32) ^ seed;
        bits = (bits ^ (bits >> 16)) * 0x7feb_352d;
        bits = (bits ^ (bits >> 15)) * 0x846c_a68b;
        bits ^= bits >> 16;
        output[ABSOLUTE_POS] = E::cast_from(f32::cast_from(bits >> 8) / 8_388_608.0 - 1.0);
    }
}

/// A matrix of these numbers.
pub fn numbers(client: &Client, elements: usize, seed: u32, dtype: ElemType) -> Handle {
    let output = client.empty(elements * dtype.size());
    let cubes = elements.div_ceil(256);
    let count = CubeCount::Static(cubes.min(32_768) as u32, cubes.div_ceil(32_768) as u32, 1);
    // SAFETY: the buffer holds `elements` and the kernel checks each position.
    unsafe {
        numbers_kernel::launch_unchecked(
            client,
            count,
            CubeDim::new_1d(256),
            AddressType::from_len(elements + (1 << 25)),
            BufferArg::from_raw_parts(output.clone(), elements),
            seed,
            dtype,
        );
    }
    output
}

pub struct Kept {
    selected: Selected,
    index: ElemType,
    dtype: ElemType,
    k: usize,
    width: usize,
}

impl Kept {
    pub fn new(
        client: &Client,
        x: &Handle,
        dtype: ElemType,
        [rows, width, k]: [usize; 3],
    ) -> anyhow::Result<Self> {
        let input = Rows::contiguous(x.clone(), dtype, rows, width);
        let (selected, index) = compress(client, &input, &TopkOptions::new(k))?;
        Ok(Self { selected, index, dtype, k, width })
    }

    pub fn row_bytes(&self) -> usize {
        self.k * (self.dtype.size() + self.index.size())
    }

    pub fn compressed(&self) -> Compressed<'_> {
        Compressed {
            values: &self.selected.values,
            columns: &self.selected.indices,
            dtype: self.dtype,
            index: self.index,
            k: self.k,
            width: self.width,
        }
    }
}

/// Reads a row of a contiguous f32 matrix.
pub fn row(client: &Client, matrix: &Handle, row: usize, width: usize) -> anyhow::Result<Vec<f32>> {
    let size = size_of::<f32>();
    let used = matrix.size_in_used() as usize;
    let start = row * width * size;
    let part =
        matrix.clone().offset_start(start as u64).offset_end((used - start - width * size) as u64);
    let bytes = client.read_one(part).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}
