use burn::tensor::{DType, Device, Tensor, kind::Ordered};

use super::{
    super::lists::{Launched, List, Request, Selected, read_all},
    error::ShardedError,
    types::{MERGED, Part},
};

pub(super) fn merge<K: Ordered>(
    request: &Request,
    parts: Vec<Part<K>>,
    primary: &Device,
    dtype: DType,
) -> Result<Selected<K>, ShardedError> {
    let mut devices: Vec<Device> = parts.iter().map(|part| part.elements.device()).collect();
    let (elements, firsts): (Vec<_>, Vec<_>) =
        (parts.into_iter()).map(|part| (part.elements, part.first)).unzip();
    let mut lists = select(request, elements, |part, at| firsts[part] + at)?;
    while lists.len() > MERGED {
        devices = devices.into_iter().step_by(2).collect();
        let pairs: Vec<List> = lists.chunks(2).map(List::joined).collect();
        let elements = (pairs.iter().zip(&devices))
            .map(|(pair, device)| pair.elements::<K>(device, dtype))
            .collect();
        lists = select(request, elements, |pair, at| pairs[pair].place(at))?;
    }
    Ok(request.best_of_list(List::joined(&lists), primary, dtype))
}

/// Queues all devices before waiting.
fn select<K: Ordered>(
    request: &Request,
    vectors: Vec<Tensor<1, K>>,
    place: impl Fn(usize, i64) -> i64,
) -> Result<Vec<List>, ShardedError> {
    let launched = vectors.into_iter().map(|x| Launched::new(request, x)).collect();
    Ok(read_all(launched, place)?)
}
