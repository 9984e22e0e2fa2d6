//! Line charts as SVG, and the same lines as Markdown tables.

mod draw;
mod markdown;
pub mod panel;

pub use draw::{Axes, Scale, svg};
pub use markdown::{significant, table};
pub use panel::{FLOOR, Panel, READ, power};
