//! Building blocks that several families share.

pub(crate) mod csr;
pub(crate) mod mma;
