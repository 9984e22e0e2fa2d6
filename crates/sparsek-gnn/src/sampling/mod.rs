//! Parts of graphs that exceed a device.

pub(crate) mod ahead;
mod loader;
mod neighbor;
mod partition;
mod types;
mod walk;

pub use self::{
    loader::{NeighborBatches, NeighborLoader},
    neighbor::NeighborSampler,
    partition::{Partition, PartitionMethod},
    types::Batch,
    walk::RandomWalk,
};
