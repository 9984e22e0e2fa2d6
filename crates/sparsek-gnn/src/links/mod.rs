//! Link prediction: splits, negative samples, scores and metrics.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{Device, Tensor};
//! use sparsek_gnn::{
//!     Graph,
//!     links::{LinkPairs, LinkSplitConfig, auc, random_link_split},
//!     nn::SageConvConfig,
//! };
//!
//! let device = Device::flex();
//! let ring = Graph::from_edges(40, (0..40).map(|i| (i, (i + 1) % 40))).unwrap().symmetrized();
//! let split = random_link_split(&ring, &LinkSplitConfig::new().with_undirected(true)).unwrap();
//! let encoder = SageConvConfig::new(8, 4).init(&device);
//! let z = encoder.forward(&split.test.graph, Tensor::ones([40, 8], &device));
//! let [positive, negative] = [&split.test.positives, &split.test.negatives].map(|pairs| {
//!     let pairs = LinkPairs::new(40, pairs, &device).unwrap();
//!     pairs.dot_scores(z.clone()).try_into_vec_as::<f32>().unwrap()
//! });
//! assert_eq!((positive.len(), negative.len()), (8, 8));
//! assert!((0.0..=1.0).contains(&auc(&positive, &negative)));
//! # }
//! ```

mod error;
mod metric;
mod negative;
mod pairs;
mod split;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub use self::{
    error::LinkError,
    metric::{auc, hits_at, mrr},
    negative::negative_sampling,
    pairs::LinkPairs,
    split::{LinkSet, LinkSplit, LinkSplitConfig, random_link_split},
};
