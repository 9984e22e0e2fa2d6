//! Burn's tensors to the kernels of `sparsek-kernels`.

mod compressed;
mod dense;
mod distance;
mod spmm;
mod tensor;
mod topk;
mod tuning;
