//! Line charts as SVG, the same lines as Markdown tables, and bars.

mod bars;
mod draw;
mod markdown;
pub mod panel;

pub use bars::{Bar, Bars, bars};
pub use draw::{Axes, Scale, svg};
pub use markdown::{significant, table};
pub use panel::{FLOOR, Panel, READ, power};
