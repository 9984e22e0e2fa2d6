mod compressed;
mod dense;
mod distance;
mod spmm;
mod tensor;
mod topk;
mod tuning;
