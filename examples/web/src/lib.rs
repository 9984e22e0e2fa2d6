//! Top-k, nearest neighbors and MaxK-GNN in a browser; the README tells how to build the page.
//!
//! `page` is what the page's JavaScript calls, and exists in WebAssembly only. The other modules
//! need no backend.

pub mod compare;
pub mod layout;
#[cfg(target_arch = "wasm32")]
mod page;
pub mod random;
