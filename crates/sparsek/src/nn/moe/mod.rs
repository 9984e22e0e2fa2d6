mod dispatch;
mod router;
mod sparse_moe;

pub use dispatch::MoeDispatch;
pub use router::{Gate, Routing, TopkRouter, TopkRouterConfig};
pub use sparse_moe::{Expert, SparseMoe, SparseMoeConfig};
