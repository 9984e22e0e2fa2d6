//! Random features and classes for timing.

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use sparsek::io::memory;

use super::{
    error::DatasetError,
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
};
use crate::{graph::Graph, random::mix};

const CHUNK: usize = 4096;

/// Random features and classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Features per node. Default 100.
    pub features: usize,
    /// Classes. Default 47.
    pub classes: usize,
    /// Default 0.
    pub seed: u64,
}

impl Default for Noise {
    fn default() -> Self {
        Self { features: 100, classes: 47, seed: 0 }
    }
}

impl Noise {
    pub(super) fn bytes(&self, nodes: usize) -> u128 {
        memory::product(&[nodes, self.features, size_of::<f32>()])
            .saturating_add(memory::product(&[nodes, 16]))
    }

    /// Adds normal features, uniform classes and a random 60:20:20 split, independent of threads.
    /// Errors below 5 nodes, and without features or classes.
    ///
    /// ```
    /// use sparsek_gnn::datasets::{karate::karate_club, noise::Noise};
    ///
    /// let data = Noise::default().dataset("noise", karate_club().graph().clone()).unwrap();
    /// assert_eq!((data.nodes(), data.feature_width(), data.classes()), (34, 100, 47));
    /// ```
    pub fn dataset(&self, name: &str, graph: Graph) -> Result<NodeDataset, DatasetError> {
        let Self { features: width, classes, seed } = *self;
        let nodes = graph.nodes();
        if nodes < 5 || width == 0 || classes == 0 || classes > u32::MAX as usize {
            let reason = format!("{nodes} nodes, {width} features, {classes} classes");
            return Err(DatasetError::Invalid(format!("{name}: {reason}")));
        }
        let asked = format_args!("{name}, {nodes} nodes of {width} features,");
        memory::check(asked, self.bytes(nodes))?;
        let mut features = vec![0f32; nodes * width];
        let chunks = features.par_chunks_mut(CHUNK * width).enumerate();
        chunks.for_each(|(at, chunk)| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed) ^ at as u64));
            let draw = || StandardNormal.sample(&mut rng);
            chunk.fill_with(draw);
        });
        let class = |node| (mix(mix(!seed) ^ node) % classes as u64) as u32;
        let labels = (0..nodes as u64).into_par_iter().map(class).collect();
        let mut train: Vec<u32> = (0..nodes as u32).collect();
        train.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let test = train.split_off(nodes * 4 / 5);
        let val = train.split_off(nodes * 3 / 5);
        NodeDataset::new(NodeDatasetParts {
            name: name.to_string(),
            graph,
            features,
            feature_width: width,
            labels: Labels::Classes(labels),
            classes,
            train,
            val,
            test,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn features_classes_and_splits() {
        let nodes = 3 * CHUNK + 5;
        let graph = Graph::from_edges(nodes, [(0, 1)]).unwrap();
        let noise = Noise { features: 2, classes: 3, seed: 4 };
        let data = noise.dataset("noise", graph.clone()).unwrap();
        let count = data.features().len() as f64;
        let mean =
            |power| data.features().iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / count;
        assert!(mean(1).abs() < 0.03 && (mean(2) - 1.0).abs() < 0.05, "{} {}", mean(1), mean(2));
        assert_ne!(data.features()[..4], data.features()[CHUNK * 2..][..4]);
        let Labels::Classes(labels) = data.labels() else { panic!("one class each") };
        for class in 0..3 {
            let found = labels.iter().filter(|&&label| label == class).count();
            assert!(found.abs_diff(nodes / 3) < nodes / 30, "{class}: {found}");
        }
        let sizes = [data.train(), data.val(), data.test()].map(<[u32]>::len);
        assert_eq!(sizes.iter().sum::<usize>(), nodes);
        assert_eq!(sizes[0], nodes * 3 / 5);

        let again = noise.dataset("noise", graph.clone()).unwrap();
        assert_eq!(again.features(), data.features());
        assert_eq!(again.train(), data.train());
        let other = Noise { seed: 5, ..noise }.dataset("noise", graph).unwrap();
        assert_ne!(other.features(), data.features());
    }

    #[rstest]
    #[case::least(5, 1, 1, true)]
    #[case::nodes(4, 1, 1, false)]
    #[case::features(5, 0, 1, false)]
    #[case::classes(5, 1, 0, false)]
    #[case::memory(5, 1 << 60, 1, false)]
    #[case::memory(5, usize::MAX, 1, false)]
    fn too_little_and_too_much_are_refused(
        #[case] nodes: usize,
        #[case] features: usize,
        #[case] classes: usize,
        #[case] accepted: bool,
    ) {
        let graph = Graph::from_edges(nodes, []).unwrap();
        let noise = Noise { features, classes, seed: 0 };
        assert_eq!(noise.dataset("noise", graph).is_ok(), accepted);
    }
}
