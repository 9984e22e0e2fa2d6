//! Layers, one a file, and the models made of them.
mod dense;
mod dropout;
mod error;
mod gcn;
mod gin;
mod maxk;
mod model;
mod sage;

pub use error::ModelError;
pub use gcn::{GcnConv, GcnConvConfig};
pub use gin::{GinConv, GinConvConfig, GinMlpConfig};
pub use maxk::{Activation, MaxK, MaxKConfig, method_from_str, method_to_string};
pub use model::{Architecture, Form, MaxKModel, MaxKModelConfig};
pub use sage::{Aggregator, SageConv, SageConvConfig};
