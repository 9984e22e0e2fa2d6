//! Parts of graphs that exceed a device.
//!
//! - [`NeighborSampler`]: some nodes and sampled neighbors, hop by hop.
//! - [`Partition`]: random parts or clusters, and their induced graphs.
mod neighbor;
mod partition;
mod types;

pub use self::{
    neighbor::NeighborSampler,
    partition::{Partition, PartitionMethod},
    types::Batch,
};
