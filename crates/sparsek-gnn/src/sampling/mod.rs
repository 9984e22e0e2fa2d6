//! Parts of graphs that exceed a device: [`NeighborSampler`] samples, [`Partition`] induces.
mod neighbor;
mod partition;
mod types;

pub use self::{
    neighbor::NeighborSampler,
    partition::{Partition, PartitionMethod},
    types::Batch,
};
