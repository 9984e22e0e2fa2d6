//! Parts of a graph for training when the whole does not fit on a device.
//!
//! - [`NeighborSampler`]: some nodes and sampled neighbors, hop by hop.
//! - [`Partition`]: random parts or clusters, and the graphs they induce.
mod neighbor;
mod partition;
mod types;

pub use self::{
    neighbor::NeighborSampler,
    partition::{Partition, PartitionMethod},
    types::Batch,
};
