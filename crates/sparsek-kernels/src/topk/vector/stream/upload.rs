//! Uploads large parts, through pinned memory if any.

use std::{mem::MaybeUninit, slice};

use cubecl::{
    bytes::{AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes},
    prelude::*,
    server::Handle,
};
use rayon::prelude::*;

use super::super::tuning::{COPY_BYTES, MIN_PINNED_BYTES};

pub(super) fn upload(client: &Client, bytes: &[u8]) -> Handle {
    let staged = pinned(client, Lent::of(bytes), bytes.len());
    client.create(staged.unwrap_or_else(|| Bytes::from_bytes_vec(bytes.to_vec())))
}

pub(super) fn blank(client: &Client, bytes: usize) -> Bytes {
    pinned(client, Lent(None), bytes).unwrap_or_else(|| Bytes::from_bytes_vec(vec![0; bytes]))
}

fn pinned(client: &Client, lent: Lent, bytes: usize) -> Option<Bytes> {
    if bytes < MIN_PINNED_BYTES {
        return None;
    }
    let mut staged = lent.bytes(bytes);
    client.staging([&mut staged].into_iter(), false);
    // Other: the runtime has no pinned memory.
    (staged.property() != AllocationProperty::Other).then_some(staged)
}

/// None keeps the system's zeros.
struct Lent(Option<(*const u8, usize)>);

impl Lent {
    /// The result must not outlive `slice`.
    fn of(slice: &[u8]) -> Self {
        Self(Some((slice.as_ptr(), slice.len())))
    }

    fn bytes(self, length: usize) -> Bytes {
        // SAFETY: a slice is initialized; without one, nothing is read.
        unsafe { Bytes::from_controller(Box::new(self), length) }
    }

    fn slice(&self) -> Option<&[u8]> {
        // SAFETY: `pinned` drops these bytes before its caller's slice ends.
        self.0.map(|(start, length)| unsafe { slice::from_raw_parts(start, length) })
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
        // SAFETY: initialized bytes are valid `MaybeUninit`.
        Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
    }

    unsafe fn copy_into(&self, buffer: &mut [u8]) {
        if let Some(bytes) = self.slice() {
            copy(&bytes[..buffer.len()], buffer);
        }
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    (to.par_chunks_mut(COPY_BYTES).zip(from.par_chunks(COPY_BYTES)))
        .for_each(|(to, from)| to.copy_from_slice(from));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn lent_bytes_are_copied_whole(
        #[values(0, 1, COPY_BYTES - 1, 3 * COPY_BYTES + 5)] length: usize,
    ) {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 31) as u8).collect();
        let mut copied = Bytes::from_bytes_vec(vec![0; length]);
        Lent::of(&bytes).bytes(length).copy_into(&mut copied);
        assert!(copied[..] == bytes[..]);
    }
}
