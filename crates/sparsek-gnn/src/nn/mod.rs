//! Layers and models.
//!
//! PyG's layers keep its formulas and defaults, unless noted. Convolutions and pooling are
//! deterministic, with gradients for features, weights and parameters; maxima and minima pass them
//! to the first tie. Edge weights, in x's dtype, and features follow
//! [`Graph::pattern`](crate::Graph::pattern). Layers panic for undocumented shapes.

mod activation;
pub mod aggregate;
mod aggregator;
mod appnp;
mod attention;
mod cheb;
pub(crate) mod constant;
mod convolution;
mod dense;
mod dropout;
mod error;
mod gat;
mod gat_v2;
mod gcn;
mod gin;
mod gin_graph_model;
mod graph_conv;
mod graph_model;
mod graph_norm;
mod hetero_conv;
mod jumping_knowledge;
mod model;
mod node_model;
mod pair_norm;
mod plain;
mod pna;
mod pool;
mod rgcn;
mod sage;
mod sg;
mod sizes;
mod transformer;

pub use sparsek::nn::{MaxK, MaxKConfig};

pub use self::{
    activation::{Activation, method_from_str},
    aggregator::Aggregator,
    appnp::{AppnpConv, AppnpConvConfig},
    cheb::{ChebConv, ChebConvConfig},
    error::ModelError,
    gat::{GatConv, GatConvConfig},
    gat_v2::{GatV2Conv, GatV2ConvConfig},
    gcn::{GcnConv, GcnConvConfig},
    gin::{GinConv, GinConvConfig, GinMlpConfig},
    gin_graph_model::{GinGraphModel, GinGraphModelConfig},
    graph_conv::{GraphConv, GraphConvConfig},
    graph_model::{GraphModel, GraphModelConfig, Readout},
    graph_norm::{GraphNorm, GraphNormConfig},
    hetero_conv::{EdgeFeatures, HeteroConv, HeteroConvConfig, NodeFeatures, RelationConvConfig},
    jumping_knowledge::JumpingKnowledge,
    model::{Architecture, MaxKModel, MaxKModelConfig, Representation},
    node_model::{NodeModel, NodeModelConfig},
    pair_norm::PairNorm,
    plain::{ConvKind, PlainModel, PlainModelConfig},
    pna::{PnaAggregator, PnaConv, PnaConvConfig, PnaScaler},
    pool::{
        Pooled, SagPooling, SagPoolingConfig, Set2Set, Set2SetConfig, TopkPooling,
        TopkPoolingConfig, global_max_pool, global_mean_pool, global_sum_pool,
    },
    rgcn::{RgcnConv, RgcnConvConfig},
    sage::{SageConv, SageConvConfig},
    sg::{SgConv, SgConvConfig},
    transformer::{TransformerConv, TransformerConvConfig},
};
