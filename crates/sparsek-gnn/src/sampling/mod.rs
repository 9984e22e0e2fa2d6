//! Parts of graphs that exceed a device: sampled neighborhoods or induced parts.
mod neighbor;
mod partition;
mod types;

pub use self::{
    neighbor::NeighborSampler,
    partition::{Partition, PartitionMethod},
    types::Batch,
};
