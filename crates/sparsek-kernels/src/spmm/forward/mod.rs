//! Products with dense rows (`gather`) and compressed rows (`compressed`, `plane`, `packed`).

pub(crate) mod compressed;
pub(crate) mod gather;
pub(crate) mod packed;
pub(crate) mod plane;
