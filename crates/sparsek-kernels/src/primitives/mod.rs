pub(crate) mod approx;
pub(crate) mod bit_set;
pub(crate) mod csr;
pub(crate) mod infinity;
pub(crate) mod mma;
pub(crate) mod team;
