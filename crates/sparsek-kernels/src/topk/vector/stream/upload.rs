//! The way of large parts to the device.
//!
//! `Client::create_from_slice` copies twice on the calling thread, and CUDA's driver once more into pinned memory. Here a
//! part is copied once, by several threads, into pinned memory where the runtime has it; from there the device
//! copies it while the host goes on.

use std::{mem::MaybeUninit, slice};

use cubecl::{
    bytes::{AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes},
    prelude::*,
    server::Handle,
};
use rayon::prelude::*;

/// Bytes from which on pinned memory is asked for.
const PINNED_FROM: usize = 1 << 20;
/// Bytes that a thread copies at a time. 64 MiB are copied at 71 GB/s in shares of 1 MiB, at 62 in those of 256 KiB, 54
/// in those of 4 MiB; threads that are started for each 64 MiB copy at 33 GB/s (16 cores beside an NVIDIA H200).
const SHARE: usize = 1 << 20;

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

/// Copies by the threads of rayon's pool.
fn copy(from: &[u8], to: &mut [u8]) {
    (to.par_chunks_mut(SHARE).zip(from.par_chunks(SHARE)))
        .for_each(|(to, from)| to.copy_from_slice(from));
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
