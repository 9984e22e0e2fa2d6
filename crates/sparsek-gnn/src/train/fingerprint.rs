use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::datasets::{Labels, NodeDataset};

/// Dataset options that [`Trainer`](super::Trainer) compares on resumption.
pub type Preparation = BTreeMap<String, String>;

/// Dataset hashes, without the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    graph: String,
    features: String,
    labels: String,
    splits: String,
}

impl Fingerprint {
    /// Hashes a dataset.
    pub fn of(data: &NodeDataset) -> Self {
        let pattern = data.graph().pattern();
        let graph = Hash::new()
            .number(pattern.rows())
            .words(pattern.indptr(), u32::to_le_bytes)
            .words(pattern.indices(), u32::to_le_bytes);
        let features =
            Hash::new().number(data.feature_width()).words(data.features(), f32::to_le_bytes);
        let labels = Hash::new().number(data.classes());
        let labels = match data.labels() {
            Labels::Classes(classes) => labels.number(0).words(classes, u32::to_le_bytes),
            Labels::Sets(sets) => labels.number(1).words(sets, |set| [u8::from(set)]),
        };
        let splits = [data.train(), data.val(), data.test()]
            .into_iter()
            .fold(Hash::new(), |all, split| all.words(split, u32::to_le_bytes));
        Self {
            graph: graph.text(),
            features: features.text(),
            labels: labels.text(),
            splits: splits.text(),
        }
    }

    /// Parts that differ.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        [
            ("graph", &self.graph, &other.graph),
            ("features", &self.features, &other.features),
            ("labels", &self.labels, &other.labels),
            ("splits", &self.splits, &other.splits),
        ]
        .into_iter()
        .filter(|(_, own, other)| own != other)
        .map(|(part, ..)| part)
        .collect()
    }
}

pub(super) fn differences(saved: &Preparation, found: &Preparation) -> Vec<String> {
    let value = |of: &Preparation, name: &str| {
        of.get(name).map_or_else(|| "not set".to_string(), Clone::clone)
    };
    let names = saved.keys().chain(found.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    names
        .into_iter()
        .filter(|name| saved.get(*name) != found.get(*name))
        .map(|name| {
            let (saved, found) = (value(saved, name), value(found, name));
            format!("{name} was {saved} and is {found}")
        })
        .collect()
}

/// SHA-256 of length-prefixed arrays.
struct Hash(Sha256);

impl Hash {
    fn new() -> Self {
        Self(Sha256::new())
    }

    fn number(mut self, number: usize) -> Self {
        self.0.update((number as u64).to_le_bytes());
        self
    }

    fn words<T: Copy, const N: usize>(self, words: &[T], bytes: impl Fn(T) -> [u8; N]) -> Self {
        let mut hash = self.number(words.len());
        let mut buffer = Vec::with_capacity(4096 * N);
        for chunk in words.chunks(4096) {
            buffer.clear();
            chunk.iter().for_each(|&word| buffer.extend(bytes(word)));
            hash.0.update(&buffer);
        }
        hash
    }

    fn text(self) -> String {
        hex(&self.0.finalize())
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::karate;

    #[test]
    fn every_part_of_a_dataset_counts_but_its_name() {
        let data = karate::karate_club();
        let own = Fingerprint::of(&data);
        assert_eq!(own, Fingerprint::of(&data.clone()));
        let looped = data.clone().with_graph(data.graph().with_self_loops());
        assert_eq!(own.differences(&Fingerprint::of(&looped)), ["graph"]);
        let scaled = data.clone().with_standardized_features();
        assert_eq!(own.differences(&Fingerprint::of(&scaled)), ["features"]);
    }

    #[test]
    fn preparations_are_compared_by_name() {
        let of = |pairs: &[(&str, &str)]| -> Preparation {
            let pair = |&(a, b): &(&str, &str)| (a.to_string(), b.to_string());
            pairs.iter().map(pair).collect()
        };
        let (saved, found) = (
            of(&[("features", "raw"), ("format", "csr")]),
            of(&[("features", "rows"), ("format", "csr"), ("split", "a")]),
        );
        assert!(differences(&saved, &saved).is_empty());
        assert_eq!(
            differences(&saved, &found),
            ["features was raw and is rows", "split was not set and is a"]
        );
    }
}
