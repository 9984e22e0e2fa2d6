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
    if bytes.len() >= PINNED_FROM {
        let mut staged = Lent::bytes(bytes);
        client.staging([&mut staged].into_iter(), false);
        // The runtime has swapped them for its own, unless it has no pinned memory.
        if staged.property() != AllocationProperty::Other {
            return client.create(staged);
        }
    }
    client.create(Bytes::from_bytes_vec(bytes.to_vec()))
}

/// Bytes to be written before they are pushed, pinned where the runtime has pinned memory.
pub(super) fn blank(client: &Client, bytes: usize) -> Bytes {
    let mut staged = Unwritten::bytes(bytes);
    if bytes >= PINNED_FROM {
        client.staging([&mut staged].into_iter(), false);
        if staged.property() != AllocationProperty::Other {
            return staged;
        }
    }
    Bytes::from_bytes_vec(vec![0; bytes])
}

/// Bytes of a length, to be replaced by others. Copying them writes nothing: pinned memory is zeroed by the system before
/// it is handed out first.
struct Unwritten;

impl Unwritten {
    fn bytes(length: usize) -> Bytes {
        // SAFETY: they are never read; the caller replaces or drops them.
        unsafe { Bytes::from_controller(Box::new(Self), length) }
    }
}

impl AllocationController for Unwritten {
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
        Err(AccessError::WouldCopy)
    }

    unsafe fn copy_into(&self, _buffer: &mut [u8]) {}
}

/// Bytes of a caller, to be copied from.
struct Lent {
    start: *const u8,
    length: usize,
}

impl Lent {
    /// They must not outlive the slice.
    fn bytes(slice: &[u8]) -> Bytes {
        let lent = Self {
            start: slice.as_ptr(),
            length: slice.len(),
        };
        // SAFETY: all of the slice is initialized.
        unsafe { Bytes::from_controller(Box::new(lent), slice.len()) }
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
        // SAFETY: `upload` drops these bytes before its caller's slice ends.
        Ok(unsafe { slice::from_raw_parts(self.start.cast(), self.length) })
    }

    unsafe fn copy_into(&self, buffer: &mut [u8]) {
        // SAFETY: as above; the slice was initialized.
        let bytes = unsafe { slice::from_raw_parts(self.start, self.length) };
        copy(&bytes[..buffer.len()], buffer);
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
            Lent::bytes(&bytes).copy_into(&mut copied);
            assert!(copied[..] == bytes[..], "{length}");
        }
    }
}
