//! Top-k of a vector that comes in parts, such as one that is longer than the device's memory.

mod upload;

use std::{collections::VecDeque, pin::Pin, slice};

use cubecl::{
    bytes::Bytes,
    future::reader::read_sync,
    ir::{ElemType, IntKind},
    prelude::*,
    server::{Handle, ServerError},
};

use self::upload::{blank, upload};
use super::{VectorOptions, topk_vector};
use crate::{error::KernelError, launch::device_failed};

const I64: ElemType = ElemType::Int(IntKind::I64);
/// Bytes of a piece, the least and the most, and its elements for each member.
const PIECES: [usize; 2] = [1 << 26, 1 << 29];
const SHARE: usize = 64;
/// Values on the host from which on the best of them are selected, the least and for each member.
const KEPT: usize = 1 << 20;
const KEPT_SHARE: usize = 4;

/// The k best elements of all parts pushed so far. The result is the same bit for bit, whatever the parts.
///
/// Parts are copied to the device in equal pieces of up to 64 MiB (of 64 k elements where that is more, up to 512 MiB), from each of which is
/// selected as the options say. While the device copies a piece and selects from it, the host brings the next one; up to three are on the device at a time, with
/// the scratch memory of [`topk_vector`]. Several devices take pieces in turn. The best of the pieces are kept by the host, up to 4 k (or 2^20, where that
/// is more) and those of a piece for each device, 8 bytes and a value each.
pub struct TopkStream<'a> {
    clients: &'a [Client],
    /// Which of them takes the next piece.
    turn: usize,
    dtype: ElemType,
    options: VectorOptions,
    /// Elements pushed.
    seen: u64,
    /// Where the best are among, in index order: their bytes, and their places among all.
    best: Best,
    /// What is selected from the last pieces.
    pending: VecDeque<Pending<'a>>,
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

/// The values and indices of a selection on their way to the host.
type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<Bytes>, ServerError>> + Send + 'a>>;

/// A selection that may still run.
struct Pending<'a> {
    client: &'a Client,
    /// None once it has been waited for.
    reading: Option<Reading<'a>>,
    members: usize,
    /// The place of the piece's first element.
    first: u64,
}

impl Drop for Pending<'_> {
    /// A reading that nobody waits for leaves its buffer mapped, which wgpu then uses again.
    fn drop(&mut self) {
        if let Some(reading) = self.reading.take() {
            let _ = read_sync(reading);
        }
    }
}

impl<'a> TopkStream<'a> {
    /// Before the first part.
    pub fn new(client: &'a Client, dtype: ElemType, options: VectorOptions) -> Self {
        Self::over(slice::from_ref(client), dtype, options)
    }

    /// Before the first part, over several devices. The first of them merges what all have selected.
    ///
    /// # Panics
    ///
    /// If there are no devices.
    pub fn over(clients: &'a [Client], dtype: ElemType, options: VectorOptions) -> Self {
        assert!(!clients.is_empty(), "TopkStream: there are no devices");
        Self {
            clients,
            turn: 0,
            dtype,
            options,
            seen: 0,
            best: Best::default(),
            pending: VecDeque::new(),
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
        self.require_whole(part.len())?;
        let size = self.dtype.size();
        let least = SHARE.saturating_mul(self.options.k).saturating_mul(size);
        let most = least.clamp(PIECES[0], PIECES[1]) / size;
        // None much shorter than the others: options may not do for few elements.
        let length = part.len() / size;
        let each = length.div_ceil(length.div_ceil(most).max(1)).max(1);
        part.chunks(each * size).try_for_each(|piece| {
            self.push_piece(piece.len() / size, |client| upload(client, piece))
        })
    }

    fn push_piece(
        &mut self,
        length: usize,
        upload: impl FnOnce(&Client) -> Handle,
    ) -> Result<(), KernelError> {
        let client = &self.clients[self.turn];
        self.turn = (self.turn + 1) % self.clients.len();
        let members = self.options.k.min(length);
        let options = VectorOptions {
            k: members,
            sorted: false,
            ..self.options
        };
        let piece = upload(client);
        let selected = topk_vector(client, &piece, self.dtype, length, &options, I64)?;
        let first = self.seen;
        self.seen += length as u64;
        if members == 0 {
            return Ok(());
        }
        // Asked for before the next piece is on its way, so that it need not be waited for.
        let reading = client.read_async(vec![selected.values, selected.indices]);
        self.pending.push_back(Pending {
            client,
            reading: Some(Box::pin(reading)),
            members,
            first,
        });
        self.settle(self.clients.len())
    }

    /// A buffer for a part, in pinned memory where the runtime has it (CUDA): what is written there goes to
    /// the device without another copy on the host. Its first contents are zeros or those of an earlier part.
    pub fn buffer(&self, bytes: usize) -> Bytes {
        blank(&self.clients[self.turn], bytes)
    }

    /// [`push`](Self::push) of all bytes of a buffer, as one piece: without a copy on the host, if it is pinned. Buffers of
    /// 64 MiB and more are worth a selection of their own.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_buffer(&mut self, part: Bytes) -> Result<(), KernelError> {
        let pushed = self.push_whole(part);
        if let Err(error) = &pushed {
            self.failed.get_or_insert(error.clone());
        }
        pushed
    }

    fn push_whole(&mut self, part: Bytes) -> Result<(), KernelError> {
        self.require_whole(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        let length = part.len() / self.dtype.size();
        self.push_piece(length, |client| client.create(part))
    }

    fn require_whole(&self, bytes: usize) -> Result<(), KernelError> {
        let size = self.dtype.size();
        if bytes.is_multiple_of(size) {
            Ok(())
        } else {
            Err(KernelError::Part { bytes, size })
        }
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
        self.settle(0)?;
        let k = self.options.k;
        if self.best.indices.len() < k {
            return Err(KernelError::KTooLarge {
                k,
                cols: self.seen as usize,
            });
        }
        let sorted = self.options.sorted && k > 0;
        if sorted || self.best.indices.len() > k {
            self.reduce(sorted)?;
        }
        Ok(self.best)
    }

    /// Puts the best of pieces behind those so far, until so many pieces are left.
    fn settle(&mut self, left: usize) -> Result<(), KernelError> {
        while self.pending.len() > left {
            let first = self.pending.pop_front();
            self.take_over(first.expect("one of those that are left"))?;
        }
        Ok(())
    }

    fn take_over(&mut self, mut pending: Pending) -> Result<(), KernelError> {
        let reading = pending.reading.take().expect("nobody has waited");
        let [values, places] = read(pending.client, reading)?;
        let members = pending.members;
        // Those so far come first, as their places do, and so among equals.
        let values = &values[..members * self.dtype.size()];
        self.best.values.extend_from_slice(values);
        let places = i64::from_bytes(&places)[..members].iter();
        let places = places.map(|&place| pending.first + place as u64);
        self.best.indices.extend(places);
        let most = KEPT.max(KEPT_SHARE.saturating_mul(self.options.k));
        if self.best.indices.len() > most {
            self.reduce(false)?;
        }
        Ok(())
    }

    /// Keeps the k best only, however parts are selected from: these are fewer, and not what options are asked for.
    fn reduce(&mut self, sorted: bool) -> Result<(), KernelError> {
        let (k, length) = (self.options.k, self.best.indices.len());
        let client = &self.clients[0];
        let handle = upload(client, &self.best.values);
        let options = VectorOptions {
            largest: self.options.largest,
            sorted,
            tuning: self.options.tuning,
            ..VectorOptions::new(k)
        };
        let kept = topk_vector(client, &handle, self.dtype, length, &options, I64)?;
        let [places] = read(client, client.read_async(vec![kept.indices]))?;
        self.keep(&i64::from_bytes(&places)[..k]);
        Ok(())
    }

    /// Leaves those of the best at some places, in this order.
    fn keep(&mut self, places: &[i64]) {
        let size = self.dtype.size();
        let Best { values, indices } = std::mem::take(&mut self.best);
        self.best = Best {
            values: places
                .iter()
                .flat_map(|&place| &values[place as usize * size..][..size])
                .copied()
                .collect(),
            indices: places.iter().map(|&at| indices[at as usize]).collect(),
        };
    }
}

fn read<const N: usize>(
    client: &Client,
    reading: impl Future<Output = Result<Vec<Bytes>, ServerError>> + Send,
) -> Result<[Bytes; N], KernelError> {
    let read = read_sync(reading).map_err(|error| error.to_string());
    let read = read.and_then(|read| {
        let count = read.len();
        read.try_into()
            .map_err(|_| format!("{count} buffers instead of {N}"))
    });
    read.map_err(|reason| device_failed(client, reason))
}
