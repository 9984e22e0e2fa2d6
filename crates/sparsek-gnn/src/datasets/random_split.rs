use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::labels::Labels;

/// Random split, as PyG's `RandomNodeSplit`; the rest tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomSplit {
    /// Nodes per class. Default: 20 and 30, as Shchur et al.
    PerClass {
        /// Training nodes.
        train: usize,
        /// Validation nodes.
        val: usize,
    },
    /// Rounded fractions of all nodes.
    Fractions {
        /// Training nodes.
        train: f64,
        /// Validation nodes.
        val: f64,
    },
}

impl Default for RandomSplit {
    fn default() -> Self {
        Self::PerClass { train: 20, val: 30 }
    }
}

impl RandomSplit {
    /// Lists ascend.
    pub(super) fn draw(
        self,
        labels: &Labels,
        (nodes, classes): (usize, usize),
        seed: u64,
    ) -> Result<[Vec<u32>; 3], String> {
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut lists = [const { Vec::new() }; 3];
        match (self, labels) {
            (Self::PerClass { train, val }, Labels::Classes(labels)) => {
                let mut counts = vec![0; classes];
                for node in order {
                    let count = &mut counts[labels[node as usize] as usize];
                    let list = match *count {
                        count if count < train => 0,
                        count if count - train < val => 1,
                        _ => 2,
                    };
                    *count += 1;
                    lists[list].push(node);
                }
            }
            (Self::PerClass { .. }, Labels::Sets(_)) => {
                return Err("a split per class needs one class per node".to_string());
            }
            (Self::Fractions { train, val }, _) => {
                let valid = train >= 0.0 && val >= 0.0 && train + val <= 1.0;
                if !valid {
                    return Err(format!(
                        "fractions {train} and {val} are not at least 0 with a sum up to 1"
                    ));
                }
                let part = |fraction: f64| (nodes as f64 * fraction).round() as usize;
                let train = part(train);
                let val = part(val).min(nodes - train);
                let (first, rest) = order.split_at(train);
                let (second, third) = rest.split_at(val);
                lists = [first, second, third].map(<[u32]>::to_vec);
            }
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        Ok(lists)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn draw(split: RandomSplit, seed: u64) -> Result<[Vec<u32>; 3], String> {
        let labels = (0..1000).map(|node| if node % 100 == 3 { 2 } else { node % 2 }).collect();
        split.draw(&Labels::Classes(labels), (1000, 3), seed)
    }

    #[rstest]
    #[case::default(RandomSplit::default(), [50, 60, 890])]
    #[case::per_class(RandomSplit::PerClass { train: 4, val: 3 }, [12, 9, 979])]
    #[case::all(RandomSplit::PerClass { train: usize::MAX, val: 1 }, [1000, 0, 0])]
    #[case::fractions(RandomSplit::Fractions { train: 0.48, val: 0.32 }, [480, 320, 200])]
    #[case::rounded(RandomSplit::Fractions { train: 0.9999, val: 0.0001 }, [1000, 0, 0])]
    #[case::none(RandomSplit::Fractions { train: 0.0, val: 0.0 }, [0, 0, 1000])]
    fn every_node_is_in_one_split(#[case] split: RandomSplit, #[case] sizes: [usize; 3]) {
        let lists = draw(split, 5).unwrap();
        assert_eq!(lists.each_ref().map(Vec::len), sizes);
        assert!(lists.iter().all(|list| list.is_sorted()));
        let mut all = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<u32>>());
        assert_eq!(draw(split, 5).unwrap(), lists);
        assert_eq!(draw(split, 6).unwrap() == lists, sizes.contains(&1000));
    }

    #[test]
    fn each_class_has_as_many_nodes() {
        let [train, val, _] = draw(RandomSplit::default(), 1).unwrap();
        let small = |list: &[u32]| list.iter().filter(|&&node| node % 100 == 3).count();
        let first = |list: &[u32]| list.iter().filter(|&&node| node % 2 == 0).count();
        assert_eq!((small(&train), first(&train)), (10, 20));
        assert_eq!((small(&val), first(&val)), (0, 30));
    }

    #[rstest]
    #[case(0.6, 0.5)]
    #[case(-0.1, 0.5)]
    #[case(f64::NAN, 0.5)]
    fn bad_fractions_are_refused(#[case] train: f64, #[case] val: f64) {
        let error = draw(RandomSplit::Fractions { train, val }, 0).unwrap_err();
        assert!(error.contains("sum up to 1"), "{error}");
    }

    #[test]
    fn sets_have_no_split_per_class() {
        let labels = Labels::Sets(vec![true; 6]);
        assert!(RandomSplit::default().draw(&labels, (3, 2), 0).is_err());
        let halves = RandomSplit::Fractions { train: 0.5, val: 0.5 };
        assert!(halves.draw(&labels, (3, 2), 0).is_ok());
    }
}
