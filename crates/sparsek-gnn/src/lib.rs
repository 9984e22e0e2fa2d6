//! MaxK-GNN on Burn, over sparsek's top-k and sparse aggregation. Guide: `docs/guide`.
//!
//! Build a [`Graph`] or load [`datasets`], choose a model from [`nn`], and [`train`] it. See also
//! [`links`], [`sampling`] and `state_dict` (feature `state-dict`).
//!
//! ```
//! use burn::tensor::Device;
//! use sparsek_gnn::{
//!     datasets::karate,
//!     nn::{Activation, Architecture, MaxKModelConfig, NodeModelConfig},
//!     train::{TrainConfig, train},
//! };
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

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod datasets;
#[cfg(all(test, feature = "flex"))]
mod fixtures;
pub mod graph;
pub mod links;
pub mod nn;
mod random;
mod ranking;
pub mod sampling;
#[cfg(feature = "state-dict")]
#[cfg_attr(docsrs, doc(cfg(feature = "state-dict")))]
pub mod state_dict;
mod step;
pub mod train;

pub use graph::{Graph, GraphError};
pub use nn::aggregate;

#[cfg(all(doctest, feature = "flex"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
