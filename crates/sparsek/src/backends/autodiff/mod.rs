mod dense;
mod distance;
mod spmm;
mod topk;
mod tracking;
