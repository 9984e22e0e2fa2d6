//! Shared by the dataset targets: a temporary folder, and invariants of loaded datasets.
use std::{env::temp_dir, fs, path::PathBuf, process::id, sync::Once};

use sparsek::io::memory;
use sparsek_gnn::{
    datasets::{DatasetError, Labels, NodeDataset},
    nn::{Architecture, MaxKModelConfig},
    train::{TrainConfig, Trainer},
};

/// Memory limit of a request, in bytes.
const LIMIT: u64 = 64 << 20;

/// Separator of an input's parts; never occurs in text.
const END: u8 = 0xff;

/// An input: a byte of flags, then parts.
pub struct Input<'a> {
    flags: u8,
    parts: Vec<&'a [u8]>,
}

impl<'a> Input<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        static LIMITED: Once = Once::new();
        LIMITED.call_once(|| memory::set_limit(LIMIT));
        let (&flags, rest) = bytes.split_first()?;
        let parts = rest.split(|&byte| byte == END).collect();
        Some(Self { flags, parts })
    }

    pub fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 == 1
    }

    /// A part; empty if missing.
    pub fn part(&self, at: usize) -> &'a [u8] {
        self.parts.get(at).copied().unwrap_or_default()
    }
}

/// A temporary folder of this process.
pub fn folder(name: &str) -> PathBuf {
    let folder = temp_dir().join(format!("sparsek-fuzz-{name}-{}", id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}

/// Checks invariants of a dataset, or the form of an error.
pub fn check(found: Result<NodeDataset, DatasetError>) {
    let data = match found {
        Ok(data) => data,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(message.len() < 4000, "{message:?}");
            return;
        }
    };
    let (nodes, width, classes) = (data.nodes(), data.feature_width(), data.classes());
    let pattern = data.graph().pattern();
    assert!(nodes > 0 && width > 0 && classes > 0);
    assert_eq!(pattern.indptr().len(), nodes + 1);
    assert!(pattern.indptr().is_sorted());
    assert_eq!(pattern.indptr()[nodes] as usize, pattern.indices().len());
    assert!(
        pattern
            .indices()
            .iter()
            .all(|&node| (node as usize) < nodes)
    );
    assert_eq!(data.features().len(), nodes * width);
    assert!(data.features().iter().all(|x| x.is_finite()));
    match data.labels() {
        Labels::Classes(labels) => {
            assert_eq!(labels.len(), nodes);
            assert!(labels.iter().all(|&label| (label as usize) < classes));
            assert!(classes <= nodes);
        }
        Labels::Sets(sets) => assert_eq!(sets.len(), nodes * classes),
    }
    let mut all = [data.train(), data.val(), data.test()].concat();
    assert!(all.iter().all(|&node| (node as usize) < nodes));
    let listed = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), listed);
    let data = data.with_standardized_features().with_normalized_rows();
    let model = MaxKModelConfig::new(Architecture::Sage, width, 16, classes);
    // May refuse, but must return.
    let _ = Trainer::new(&TrainConfig::new(), &model, &data);
}
