pub(crate) mod compressed;
pub(crate) mod gather;
pub(crate) mod packed;
pub(crate) mod plane;
