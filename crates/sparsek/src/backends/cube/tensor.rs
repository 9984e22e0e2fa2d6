use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::server::Handle;
use sparsek_kernels::KernelError;

pub(super) fn expect<T>(operation: &str, result: Result<T, KernelError>) -> T {
    result.unwrap_or_else(|error| panic!("{operation}: {error}"))
}

pub(super) fn tensor(like: &CubeTensor, handle: Handle, shape: Shape, dtype: DType) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    CubeTensor::new_contiguous(client, device, shape, handle, dtype)
}
