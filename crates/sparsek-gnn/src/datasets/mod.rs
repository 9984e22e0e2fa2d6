//! Node classification datasets: loaders and generators.
//!
//! Planetoid's `ind.cora.x`, … are pickled Python objects, which are not read. PyG converts them,
//! as any dataset of one graph and masks, to a folder for [`csr::load`]:
//!
//! ```text
//! python -c "import numpy as np, scipy.sparse as sp, torch_geometric as pyg
//! data = pyg.datasets.Planetoid('planetoid', 'Cora')[0]
//! graph = pyg.utils.to_scipy_sparse_matrix(data.edge_index, num_nodes=data.num_nodes)
//! splits = {name: data[name + '_mask'].nonzero()[:, 0] for name in ['train', 'val', 'test']}
//! sp.save_npz('graph.npz', graph); np.savez('split.npz', **splits)
//! np.save('features.npy', data.x); np.save('labels.npy', data.y)"
//! ```
pub mod csr;
#[cfg(feature = "download")]
pub mod download;
pub mod edge_list;
mod error;
mod files;
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

pub use self::{
    error::DatasetError,
    files::Watch,
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
    random_split::RandomSplit,
};
