//! Products with dense rows (`gather`) and compressed rows.

pub(crate) mod compressed;
pub(crate) mod gather;
pub(crate) mod packed;
pub(crate) mod plane;
