mod compressor;
mod mask;
mod module;

pub use compressor::{SparseGradient, TopkCompressor, TopkCompressorConfig};
pub use mask::{Kept, magnitude_mask, magnitude_mask_rows, n_of_m_mask};
pub use module::{PruneMasks, PruneRule};
