use std::path::Path;

use super::{error::DatasetError, files::bad, labels::Labels, random_split::RandomSplit};

/// Archive options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveOptions {
    /// Skip symmetrization.
    pub directed: bool,
    /// Default: the first stored, else [`RandomSplit::default`] with seed 0.
    pub split: Option<ArchiveSplit>,
}

/// Archive split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArchiveSplit {
    /// Index of stored masks.
    Stored(usize),
    /// Split and seed.
    Random(RandomSplit, u64),
}

/// Training, validation and test nodes.
pub type Lists = [Vec<u32>; 3];

impl ArchiveOptions {
    pub(super) fn lists(
        &self,
        file: &Path,
        (labels, classes): &(Labels, usize),
        nodes: usize,
        mask: &str,
        stored: Option<impl FnOnce(usize) -> Result<Lists, DatasetError>>,
    ) -> Result<Lists, DatasetError> {
        let draw = |split: RandomSplit, seed| {
            split.draw(labels, (nodes, *classes), seed).map_err(bad(file))
        };
        match (self.split, stored) {
            (None, Some(read)) => read(0),
            (None, None) => draw(RandomSplit::default(), 0),
            (Some(ArchiveSplit::Stored(split)), Some(read)) => read(split),
            (Some(ArchiveSplit::Stored(split)), None) => {
                Err(bad(file)(format!("has no {mask}, so that there is no split {split}")))
            }
            (Some(ArchiveSplit::Random(split, seed)), _) => draw(split, seed),
        }
    }
}

pub fn members(mask: impl Iterator<Item = bool>) -> Vec<u32> {
    (0u32..).zip(mask).filter_map(|(node, member)| member.then_some(node)).collect()
}

pub fn check_masks([splits, width]: [usize; 2], nodes: usize, split: usize) -> Result<(), String> {
    if width != nodes {
        return Err(format!("masks of {width} nodes, but there are {nodes}"));
    }
    match split < splits {
        true => Ok(()),
        false => Err(format!("no split {split}, since there are {splits}")),
    }
}
