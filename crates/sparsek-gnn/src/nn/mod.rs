//! Layers, one a file, and the models made of them.
mod error;
mod maxk;
mod sage;
mod sage_model;

pub use error::ModelError;
pub use maxk::{Activation, MaxK, MaxKConfig, method_from_str, method_to_string};
pub use sage::{Aggregator, SageConv, SageConvConfig};
pub use sage_model::{SageModel, SageModelConfig};
