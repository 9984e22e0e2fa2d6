use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Uploads integers below 2^31 as i32.
pub(crate) fn upload(values: &[u32], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}

/// Elements at places of D numbers, distinct for gradients, which scatter in parallel, unlike those
/// of `select`.
pub(super) fn gather<const D: usize>(x: Tensor<D>, places: &[u32]) -> Tensor<1> {
    if places.is_empty() {
        return empty(&x);
    }
    let places = upload(places, &x.device()).reshape([places.len() / D, D]);
    x.gather_nd(places)
}

pub(super) fn empty<const D: usize>(x: &Tensor<D>) -> Tensor<1> {
    let none = TensorData::new(Vec::<f32>::new(), [0]);
    Tensor::from_data(none, (&x.device(), x.dtype()))
}
