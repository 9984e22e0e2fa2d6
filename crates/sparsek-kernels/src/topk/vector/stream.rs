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
use super::{
    options::{VectorOptions, VectorStrategy},
    tuning::{KEPT, KEPT_PER_K, PIECE_BYTES, PIECE_LENGTH_PER_K},
    types::VectorCall,
};
use crate::{error::KernelError, launch::device_failed, topk::types::Selected};

const I64: ElemType = ElemType::Int(IntKind::I64);

/// Selects the k best of all parts pushed, however divided; the vector may exceed device memory.
///
/// Uploads equal pieces of ≤ 64 MiB, or 64·k elements if more, up to 512 MiB; options apply to
/// each. Devices hold three pieces and the scratch of [`topk_vector`](super::topk_vector); the host
/// max(4·k, 2^20) elements and a result per device, with 8-byte indices.
pub struct TopkStream<'a> {
    clients: &'a [Client],
    turn: usize,
    dtype: ElemType,
    options: VectorOptions,
    seen: u64,
    /// Superset of the k best, in index order.
    best: Best,
    pending: VecDeque<Pending<'a>>,
    failed: Option<KernelError>,
}

/// Best elements, on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Best {
    /// Bytes of the dtype.
    pub values: Vec<u8>,
    /// Indices in the whole vector.
    pub indices: Vec<u64>,
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<Bytes>, ServerError>> + Send + 'a>>;

struct Pending<'a> {
    client: &'a Client,
    reading: Option<Reading<'a>>,
    selected: usize,
    first: u64,
}

impl Drop for Pending<'_> {
    /// wgpu would reuse a mapped buffer.
    fn drop(&mut self) {
        if let Some(reading) = self.reading.take() {
            let _ = read_sync(reading);
        }
    }
}

impl<'a> TopkStream<'a> {
    /// Starts on one device.
    pub fn new(client: &'a Client, dtype: ElemType, options: VectorOptions) -> Self {
        Self::over(slice::from_ref(client), dtype, options)
    }

    /// Starts over devices in turn; the first merges. Panics without devices.
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

    /// Elements pushed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Selects from the next part, as bytes.
    ///
    /// Errors as [`topk_vector`](super::topk_vector), or if the part ends within an element. After
    /// a failure, [`finish`](Self::finish) fails too.
    pub fn push(&mut self, part: &[u8]) -> Result<(), KernelError> {
        let pushed = self.push_pieces(part);
        self.note_failure(pushed)
    }

    fn push_pieces(&mut self, part: &[u8]) -> Result<(), KernelError> {
        self.require_whole(part.len())?;
        let size = self.dtype.size();
        let least = PIECE_LENGTH_PER_K.saturating_mul(self.options.k).saturating_mul(size);
        let most = least.clamp(PIECE_BYTES[0], PIECE_BYTES[1]) / size;
        // Options may be refused for a short rest.
        let length = part.len() / size;
        let each = length.div_ceil(length.div_ceil(most).max(1)).max(1);
        part.chunks(each * size).try_for_each(|piece| {
            self.push_piece(piece.len() / size, |client| upload(client, piece))
        })
    }

    /// Buffer for a part, pinned on CUDA; holds zeros or an earlier part.
    pub fn buffer(&self, bytes: usize) -> Bytes {
        blank(&self.clients[self.turn], bytes)
    }

    /// Pushes one piece, without host copy if pinned; best ≥ 64 MiB. Errors as
    /// [`push`](Self::push).
    pub fn push_buffer(&mut self, part: Bytes) -> Result<(), KernelError> {
        let pushed = self.push_whole(part);
        self.note_failure(pushed)
    }

    fn push_whole(&mut self, part: Bytes) -> Result<(), KernelError> {
        self.require_whole(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        let length = part.len() / self.dtype.size();
        self.push_piece(length, |client| client.create(part))
    }

    fn note_failure(&mut self, pushed: Result<(), KernelError>) -> Result<(), KernelError> {
        if let Err(error) = &pushed {
            self.failed.get_or_insert(error.clone());
        }
        pushed
    }

    fn require_whole(&self, bytes: usize) -> Result<(), KernelError> {
        let size = self.dtype.size();
        if bytes.is_multiple_of(size) { Ok(()) } else { Err(KernelError::Part { bytes, size }) }
    }

    fn push_piece(
        &mut self,
        length: usize,
        upload: impl FnOnce(&Client) -> Handle,
    ) -> Result<(), KernelError> {
        let client = &self.clients[self.turn];
        self.turn = (self.turn + 1) % self.clients.len();
        let selected = self.options.k.min(length);
        let options = VectorOptions { k: selected, sorted: false, ..self.options };
        let best = self.topk(client, &upload(client), length, &options)?;
        let first = self.seen;
        self.seen += length as u64;
        if selected == 0 {
            return Ok(());
        }
        // The next upload would delay it.
        let reading = client.read_async(vec![best.values, best.indices]);
        self.pending.push_back(Pending {
            client,
            reading: Some(Box::pin(reading)),
            selected,
            first,
        });
        self.collect_pending(self.clients.len())
    }

    fn topk(
        &self,
        client: &Client,
        input: &Handle,
        length: usize,
        options: &VectorOptions,
    ) -> Result<Selected, KernelError> {
        VectorCall::new(client, input, self.dtype, length, options, I64).topk()
    }

    /// Returns the k best of all parts.
    ///
    /// Errors: fewer than k elements, or the device or a part failed.
    pub fn finish(mut self) -> Result<Best, KernelError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.collect_pending(0)?;
        let k = self.options.k;
        if self.best.indices.len() < k {
            return Err(KernelError::KTooLarge { k, cols: self.seen as usize });
        }
        let sorted = self.options.sorted && k > 0;
        if sorted || self.best.indices.len() > k {
            self.reduce(sorted)?;
        }
        Ok(self.best)
    }

    fn collect_pending(&mut self, left: usize) -> Result<(), KernelError> {
        while self.pending.len() > left {
            let first = self.pending.pop_front();
            self.collect(first.expect("a pending piece"))?;
        }
        Ok(())
    }

    fn collect(&mut self, mut pending: Pending) -> Result<(), KernelError> {
        let reading = pending.reading.take().expect("not awaited before");
        let [values, places] = read(pending.client, reading)?;
        let selected = pending.selected;
        // Appending keeps ties.
        let values = &values[..selected * self.dtype.size()];
        self.best.values.extend_from_slice(values);
        let places = i64::from_bytes(&places)[..selected].iter();
        let places = places.map(|&place| pending.first + place as u64);
        self.best.indices.extend(places);
        let most = KEPT.max(KEPT_PER_K.saturating_mul(self.options.k));
        if self.best.indices.len() > most {
            self.reduce(false)?;
        }
        Ok(())
    }

    /// Other algorithms may be refused for few elements.
    fn reduce(&mut self, sorted: bool) -> Result<(), KernelError> {
        let (k, length) = (self.options.k, self.best.indices.len());
        let client = &self.clients[0];
        let handle = upload(client, &self.best.values);
        let options = VectorOptions {
            largest: self.options.largest,
            sorted,
            strategy: VectorStrategy {
                tuning: self.options.strategy.tuning,
                ..VectorStrategy::default()
            },
            ..VectorOptions::new(k)
        };
        let kept = self.topk(client, &handle, length, &options)?;
        let [places] = read(client, client.read_async(vec![kept.indices]))?;
        self.keep(&i64::from_bytes(&places)[..k]);
        Ok(())
    }

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
    let read = read_sync(reading).map_err(|error| KernelError::of_read(client, &error))?;
    let count = read.len();
    read.try_into().map_err(|_| device_failed(client, format!("{count} buffers instead of {N}")))
}
