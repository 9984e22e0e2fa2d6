//! Zachary's karate club.

use super::{
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
};
use crate::graph::Graph;

const FRIENDSHIPS: [(u32, u32); 78] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 4),
    (0, 5),
    (0, 6),
    (0, 7),
    (0, 8),
    (0, 10),
    (0, 11),
    (0, 12),
    (0, 13),
    (0, 17),
    (0, 19),
    (0, 21),
    (0, 31),
    (1, 2),
    (1, 3),
    (1, 7),
    (1, 13),
    (1, 17),
    (1, 19),
    (1, 21),
    (1, 30),
    (2, 3),
    (2, 7),
    (2, 8),
    (2, 9),
    (2, 13),
    (2, 27),
    (2, 28),
    (2, 32),
    (3, 7),
    (3, 12),
    (3, 13),
    (4, 6),
    (4, 10),
    (5, 6),
    (5, 10),
    (5, 16),
    (6, 16),
    (8, 30),
    (8, 32),
    (8, 33),
    (9, 33),
    (13, 33),
    (14, 32),
    (14, 33),
    (15, 32),
    (15, 33),
    (18, 32),
    (18, 33),
    (19, 33),
    (20, 32),
    (20, 33),
    (22, 32),
    (22, 33),
    (23, 25),
    (23, 27),
    (23, 29),
    (23, 32),
    (23, 33),
    (24, 25),
    (24, 27),
    (24, 31),
    (25, 31),
    (26, 29),
    (26, 33),
    (27, 33),
    (28, 31),
    (28, 33),
    (29, 32),
    (29, 33),
    (30, 32),
    (30, 33),
    (31, 32),
    (31, 33),
    (32, 33),
];

const MR_HI: [u32; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// Zachary's karate club (1977): 34 people, 78 friendships in both directions, two factions.
///
/// Features are the identity. Leaders 0 and 33 and two people per faction train, four each
/// validate, the others test.
///
/// ```
/// let data = sparsek_gnn::datasets::karate::karate_club();
/// assert_eq!((data.nodes(), data.graph().edges(), data.classes()), (34, 156, 2));
/// assert!(data.graph().is_symmetric());
/// ```
pub fn karate_club() -> NodeDataset {
    let both = FRIENDSHIPS.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    let mut features = vec![0.0; 34 * 34];
    features.iter_mut().step_by(35).for_each(|x| *x = 1.0);
    let train = vec![0, 3, 11, 33, 24, 27];
    let val = vec![1, 5, 12, 16, 32, 9, 25, 29];
    let parts = NodeDatasetParts {
        name: "karate".to_string(),
        graph: Graph::from_edges(34, both).expect("the table's ids are below 34"),
        features,
        feature_width: 34,
        labels: Labels::Classes(
            (0..34).map(|member| u32::from(!MR_HI.contains(&member))).collect(),
        ),
        classes: 2,
        test: (0..34).filter(|member| !train.contains(member) && !val.contains(member)).collect(),
        train,
        val,
    };
    NodeDataset::new(parts).expect("the built-in dataset is whole")
}
