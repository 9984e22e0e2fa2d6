//! Top-k kernels on CubeCL's CPU runtime with automatic dispatch, including ragged rows.

#![no_main]

use std::sync::LazyLock;

use cubecl::client::Client;
use cubecl::ir::{ElemType, IntKind};
use cubecl::server::Handle;
use libfuzzer_sys::fuzz_target;
use sparsek_fuzz::Request;
use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{Rows, topk};
use sparsek_tests::element::Element;
use sparsek_tests::{verify, with_dtype};

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let device = cubecl::Device::cpu().expect("the CPU runtime is linked");
    device.client()
});

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = Request::read(bytes) {
        let result = with_dtype!(request.dtype, T => compare::<T>(&request));
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
});

fn compare<T: Element>(request: &Request) -> Result<(), String> {
    let matrix = request.matrix::<T>();
    let (rows, cols) = (matrix.rows, matrix.cols);
    let handle = CLIENT.create_from_slice(bytemuck::cast_slice(&matrix.data));
    let mut input = Rows::contiguous(handle, T::elem_type(), rows, cols);
    if let Some(lengths) = &request.lengths {
        let lengths: Vec<u32> = lengths.iter().map(|&length| length.max(0) as u32).collect();
        input = input.with_lengths(CLIENT.create_from_slice(bytemuck::cast_slice(&lengths)));
    }
    let options = &request.options;
    let index = ElemType::Int(IntKind::I32);
    let selected = match topk(&CLIENT, &input, options, index, None) {
        Err(KernelError::DtypeOnDevice { .. }) => return Ok(()),
        selected => selected.map_err(|e| e.to_string())?,
    };
    let slots = rows * options.k;
    let values = read::<T>(selected.values, slots);
    // -1 in missing slots.
    let positions = read::<i32>(selected.indices, slots);
    let positions: Vec<i64> = positions.into_iter().map(i64::from).collect();
    verify::selection(&matrix, options, Some(&values), &positions)
}

fn read<T: Element>(handle: Handle, length: usize) -> Vec<T> {
    let bytes = CLIENT
        .read_one(handle)
        .expect("the launch and the copy succeed");
    let mut values: Vec<T> = bytemuck::pod_collect_to_vec(&bytes[..]);
    values.truncate(length);
    values
}
