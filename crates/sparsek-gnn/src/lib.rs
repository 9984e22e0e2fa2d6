//! MaxK-GNN on Burn: graphs, layers, datasets and a trainer over sparsek's top-k and sparse aggregation.
//!
//! A [`Graph`] is immutable and shared; layers ([`nn`]) take it as an argument of `forward`. Node datasets come from
//! [`datasets`], and [`train`] fits a model, full batch or in batches, on one device or several, with best-validation checkpoints.
//!
//! # Example
//!
//! ```
//! use burn::tensor::Device;
//! use sparsek_gnn::{datasets::karate, nn::{Activation, Architecture, MaxKModelConfig}, train::{NodeModelConfig, TrainConfig, train}};
//!
//! let data = karate::karate_club();
//! let model = MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 16, data.classes())
//!     .with_activation(Activation::maxk(4))
//!     .with_layers(2);
//! model.validate().unwrap();
//! let config = TrainConfig::new().with_epochs(20).with_lr(0.01);
//! # #[cfg(feature = "flex")]
//! # {
//! let run = train(&config, &model, &data, &Device::flex(), &mut |_: &_| Ok(())).unwrap();
//! assert_eq!(run.history.len(), 20);
//! # }
//! ```

pub mod aggregate;
pub mod datasets;
pub mod graph;
pub mod nn;
pub mod preset;
mod random;
pub mod sampling;
pub mod train;

pub use graph::{Graph, GraphError};

/// The README's examples, run as doctests.
#[cfg(all(doctest, feature = "flex"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
