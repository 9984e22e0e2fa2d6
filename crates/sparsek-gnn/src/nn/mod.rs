//! Layers and models.
mod activation;
pub mod aggregate;
mod attention;
mod dense;
mod dropout;
mod error;
mod gat;
mod gat_v2;
mod gcn;
mod gin;
mod model;
mod node_model;
mod sage;

pub use sparsek::nn::{MaxK, MaxKConfig};

pub use self::{
    activation::{Activation, method_from_str},
    error::ModelError,
    gat::{GatConv, GatConvConfig},
    gat_v2::{GatV2Conv, GatV2ConvConfig},
    gcn::{GcnConv, GcnConvConfig},
    gin::{GinConv, GinConvConfig, GinMlpConfig},
    model::{Architecture, MaxKModel, MaxKModelConfig, Representation},
    node_model::{NodeModel, NodeModelConfig},
    sage::{Aggregator, SageConv, SageConvConfig},
};
