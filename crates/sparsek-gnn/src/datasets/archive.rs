//! What loaders of named arrays share.
use super::{labels::Labels, random_split::RandomSplit};

/// Options for a file of named arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveOptions {
    /// Keep stored directions. Default: symmetrize.
    pub directed: bool,
    /// Default: the first stored one; without any, [`RandomSplit::default`] with seed 0.
    pub split: Option<ArchiveSplit>,
}

/// Split of a file of named arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArchiveSplit {
    /// Number of the stored masks.
    Stored(usize),
    /// A split and its seed.
    Random(RandomSplit, u64),
}

/// Nodes to train, validate and test.
pub type Lists = [Vec<u32>; 3];

impl ArchiveOptions {
    /// Reads or draws the split; `stored` is the name of the first mask, if the file has masks.
    pub(super) fn lists(
        &self,
        labels: &Labels,
        size: (usize, usize),
        mask: &str,
        stored: Option<impl FnOnce(usize) -> Result<Lists, String>>,
    ) -> Result<Lists, String> {
        match (self.split, stored) {
            (None, Some(read)) => read(0),
            (None, None) => RandomSplit::default().draw(labels, size, 0),
            (Some(ArchiveSplit::Stored(split)), Some(read)) => read(split),
            (Some(ArchiveSplit::Stored(split)), None) => {
                Err(format!("has no array {mask}, so that there is no split {split}"))
            }
            (Some(ArchiveSplit::Random(split, seed)), _) => split.draw(labels, size, seed),
        }
    }
}

/// Nodes of a mask.
pub fn members(mask: impl Iterator<Item = bool>) -> Vec<u32> {
    (0u32..).zip(mask).filter_map(|(node, member)| member.then_some(node)).collect()
}

/// Refuses split `split` of `splits` masks of `width` nodes.
pub fn check_masks([splits, width]: [usize; 2], nodes: usize, split: usize) -> Result<(), String> {
    if width != nodes {
        return Err(format!("masks of {width} nodes, but there are {nodes}"));
    }
    match split < splits {
        true => Ok(()),
        false => Err(format!("no split {split}, since there are {splits}")),
    }
}
