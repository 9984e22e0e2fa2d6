//! Top-k of a vector that comes in parts, such as one that is longer than the device's memory.

use cubecl::{
    ir::{ElemType, IntKind},
    prelude::*,
    server::Handle,
};

use super::{VectorOptions, topk_vector};
use crate::{error::KernelError, topk::Selected};

const I64: ElemType = ElemType::Int(IntKind::I64);

/// The k best elements of all parts pushed so far. The result is the same bit for bit, whatever the parts.
///
/// The selection from a part runs while the next one is pushed: two parts are on the device at a time, with the scratch
/// memory of [`topk_vector`]. The best so far are kept by the host, k values and indices.
pub struct TopkStream<'a> {
    client: &'a Client,
    dtype: ElemType,
    options: VectorOptions,
    /// Elements pushed.
    seen: u64,
    /// The best so far in index order: their bytes, and their places among all.
    best: Best,
    /// What is selected from the last part.
    pending: Option<Pending>,
    /// Why a part is missing.
    failed: Option<KernelError>,
}

/// The best elements on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Best {
    /// Their values, in the bytes of the dtype.
    pub values: Vec<u8>,
    /// Their places in the whole vector.
    pub indices: Vec<u64>,
}

/// A selection that may still run.
struct Pending {
    selected: Selected,
    members: usize,
    /// The place of the part's first element.
    first: u64,
}

impl<'a> TopkStream<'a> {
    /// Before the first part.
    pub fn new(client: &'a Client, dtype: ElemType, options: VectorOptions) -> Self {
        Self {
            client,
            dtype,
            options,
            seen: 0,
            best: Best::default(),
            pending: None,
            failed: None,
        }
    }

    /// Elements pushed so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Selects from the next part, given by its bytes.
    ///
    /// # Errors
    ///
    /// [`KernelError`] as for [`topk_vector`], when the part is no whole number of elements, or when the device failed;
    /// then [`finish`](Self::finish) fails as well.
    pub fn push(&mut self, part: &[u8]) -> Result<(), KernelError> {
        let pushed = self.push_part(part);
        if let Err(error) = &pushed {
            self.failed.get_or_insert(error.clone());
        }
        pushed
    }

    fn push_part(&mut self, part: &[u8]) -> Result<(), KernelError> {
        let size = self.dtype.size();
        if !part.len().is_multiple_of(size) {
            return Err(KernelError::Part {
                bytes: part.len(),
                size,
            });
        }
        let length = part.len() / size;
        if length == 0 {
            return Ok(());
        }
        let members = self.options.k.min(length);
        let selected = self.select(part, members, false)?;
        let pending = Pending {
            selected,
            members,
            first: self.seen,
        };
        let before = self.pending.replace(pending);
        self.seen += length as u64;
        self.settle(before)
    }

    /// The k best of all parts.
    ///
    /// # Errors
    ///
    /// [`KernelError`] when fewer than k elements were pushed, when the device failed, or when a part did.
    pub fn finish(mut self) -> Result<Best, KernelError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let last = self.pending.take();
        self.settle(last)?;
        let k = self.options.k;
        if self.best.indices.len() < k {
            return Err(KernelError::KTooLarge {
                k,
                cols: self.seen as usize,
            });
        }
        if self.options.sorted && k > 0 {
            let order = self.select(&self.best.values, k, true)?;
            let order = self.places(order.indices, k)?;
            self.keep(&order);
        }
        Ok(self.best)
    }

    fn select(&self, values: &[u8], k: usize, sorted: bool) -> Result<Selected, KernelError> {
        let options = VectorOptions {
            k,
            sorted,
            ..self.options
        };
        let length = values.len() / self.dtype.size();
        let handle = self.client.create_from_slice(values);
        topk_vector(self.client, &handle, self.dtype, length, &options, I64)
    }

    /// Merges a part's best into those so far.
    fn settle(&mut self, pending: Option<Pending>) -> Result<(), KernelError> {
        let Some(pending) = pending.filter(|pending| pending.members > 0) else {
            return Ok(());
        };
        let Pending {
            selected,
            members,
            first,
        } = pending;
        let values = self.read(selected.values, members * self.dtype.size())?;
        let places = self.places(selected.indices, members)?;
        // Those so far come first, as their places do, and so among equals.
        self.best.values.extend(values);
        let places = places.into_iter().map(|place| first + place as u64);
        self.best.indices.extend(places);
        let k = self.options.k;
        if self.best.indices.len() > k {
            let kept = self.select(&self.best.values, k, false)?;
            let kept = self.places(kept.indices, k)?;
            self.keep(&kept);
        }
        Ok(())
    }

    /// Leaves those of the best at some places, in this order.
    fn keep(&mut self, places: &[usize]) {
        let size = self.dtype.size();
        let Best { values, indices } = std::mem::take(&mut self.best);
        self.best = Best {
            values: places
                .iter()
                .flat_map(|place| &values[place * size..][..size])
                .copied()
                .collect(),
            indices: places.iter().map(|&place| indices[place]).collect(),
        };
    }

    fn places(&self, handle: Handle, count: usize) -> Result<Vec<usize>, KernelError> {
        let bytes = self.read(handle, count * I64.size())?;
        let places = i64::from_bytes(&bytes).iter();
        Ok(places.map(|&place| place as usize).collect())
    }

    fn read(&self, handle: Handle, bytes: usize) -> Result<Vec<u8>, KernelError> {
        let read = self.client.read_one(handle);
        let mut read = read
            .map_err(|error| KernelError::Device {
                device: self.client.properties().identity.name.clone(),
                reason: error.to_string(),
            })?
            .to_vec();
        read.truncate(bytes);
        Ok(read)
    }
}
