//! Node classification datasets: loaders and generators.
pub mod csr;
#[cfg(feature = "download")]
pub mod download;
mod error;
mod files;
pub mod graphsaint;
pub mod karate;
mod labels;
mod matrix;
mod node_dataset;
pub mod noise;
pub mod ogb;
pub mod power_law;
pub mod sbm;
#[cfg(test)]
mod scratch;

pub use self::{
    error::DatasetError,
    files::Watch,
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
};
