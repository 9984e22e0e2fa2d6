//! The way of large parts to the device.
//!
//! `Client::create_from_slice` copies twice on the calling thread, and CUDA's driver once more into pinned memory. Here a
//! part is copied once, by several threads, into pinned memory where the runtime has it; from there the device
//! copies it while the host goes on.

use std::{mem::MaybeUninit, slice, thread};

use cubecl::{
    bytes::{AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes},
    prelude::*,
    server::Handle,
};

/// Bytes from which on pinned memory is asked for.
const PINNED_FROM: usize = 1 << 20;
/// Least bytes for each thread that copies, and most threads.
const SHARE: usize = 4 << 20;
const MAX_THREADS: usize = 8;

/// A buffer on the device with these bytes.
pub(super) fn upload(client: &Client, bytes: &[u8]) -> Handle {
    let staged = pinned(client, Lent::of(bytes), bytes.len());
    client.create(staged.unwrap_or_else(|| Bytes::from_bytes_vec(bytes.to_vec())))
}

/// Bytes to be written before they are pushed, pinned where the runtime has pinned memory.
pub(super) fn blank(client: &Client, bytes: usize) -> Bytes {
    pinned(client, Lent(None), bytes).unwrap_or_else(|| Bytes::from_bytes_vec(vec![0; bytes]))
}

/// Pinned memory with what is lent, where the runtime has such memory and there is enough to ask for it.
fn pinned(client: &Client, lent: Lent, bytes: usize) -> Option<Bytes> {
    if bytes < PINNED_FROM {
        return None;
    }
    let mut staged = lent.bytes(bytes);
    client.staging([&mut staged].into_iter(), false);
    // The runtime has swapped them for its own, unless it has no pinned memory.
    (staged.property() != AllocationProperty::Other).then_some(staged)
}

/// Bytes of a caller, to be copied from; or none, whose copying writes nothing: pinned memory is zeroed by the system before
/// it is handed out first.
struct Lent(Option<(*const u8, usize)>);

impl Lent {
    /// They must not outlive the slice.
    fn of(slice: &[u8]) -> Self {
        Self(Some((slice.as_ptr(), slice.len())))
    }

    fn bytes(self, length: usize) -> Bytes {
        // SAFETY: all of a slice is initialized; without one nothing can be read.
        unsafe { Bytes::from_controller(Box::new(self), length) }
    }

    fn slice(&self) -> Option<&[u8]> {
        // SAFETY: `pinned` drops these bytes before its caller's slice ends; all of that was initialized.
        self.0
            .map(|(start, length)| unsafe { slice::from_raw_parts(start, length) })
    }
}

impl AllocationController for Lent {
    fn alloc_align(&self) -> usize {
        1
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(
        &mut self,
        _policy: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        Err(AccessError::WouldCopy)
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let bytes = self.slice().ok_or(AccessError::WouldCopy)?;
        // SAFETY: initialized bytes are a special case of others.
        Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
    }

    unsafe fn copy_into(&self, buffer: &mut [u8]) {
        if let Some(bytes) = self.slice() {
            copy(&bytes[..buffer.len()], buffer);
        }
    }
}

/// Copies with as many threads as pay off.
fn copy(from: &[u8], to: &mut [u8]) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MAX_THREADS).min(from.len() / SHARE).max(1);
    let share = from.len().div_ceil(threads).max(1);
    let mut shares = from.chunks(share).zip(to.chunks_mut(share));
    let own = shares.next();
    thread::scope(|scope| {
        for (from, to) in shares {
            scope.spawn(|| to.copy_from_slice(from));
        }
        if let Some((from, to)) = own {
            to.copy_from_slice(from);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_bytes_are_copied_whole() {
        for length in [0, 1, SHARE - 1, 3 * SHARE + 5] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 31) as u8).collect();
            let mut copied = Bytes::from_bytes_vec(vec![0; length]);
            Lent::of(&bytes).bytes(length).copy_into(&mut copied);
            assert!(copied[..] == bytes[..], "{length}");
        }
    }
}
