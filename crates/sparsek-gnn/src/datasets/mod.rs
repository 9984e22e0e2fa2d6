//! Loaders and generators of node classification datasets; [`tu`] loads datasets of graphs.
//!
//! All stay within the [`sparsek::io::memory`] limit. Errors name file, line, array or tensor.
//! Loaders refuse classes ≥ 1024 if over half of the smaller ones are missing.
//!
//! PyG converts pickled Planetoid files (`ind.cora.x`, …) for `tensors::load` (feature
//! `state-dict`):
//!
//! ```text
//! python -c "import torch, torch_geometric as pyg
//! data = pyg.datasets.Planetoid('planetoid', 'Cora')[0]
//! torch.save(data.to_dict(), 'cora.pt')"
//! ```

mod archive;
pub mod csr;
#[cfg(feature = "download")]
pub mod download;
pub mod edge_list;
mod error;
mod files;
mod graph_dataset;
pub mod graphsaint;
pub mod karate;
mod labels;
mod matrix;
mod node_dataset;
pub mod noise;
pub mod npz;
pub mod ogb;
pub mod power_law;
mod random_split;
pub mod sbm;
#[cfg(test)]
mod scratch;
#[cfg(feature = "state-dict")]
pub mod tensors;
pub mod tu;

pub use self::{
    archive::{ArchiveOptions, ArchiveSplit},
    error::DatasetError,
    files::Watch,
    graph_dataset::{Fold, GraphDataset, GraphDatasetParts},
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
    random_split::RandomSplit,
};
