//! Tensor files of PyG and DGL.

use std::{collections::BTreeMap, path::Path};

use burn::{
    store::{bridge, burn_pack::Tensor},
    tensor::TensorData,
};
use sparsek::io::{input, memory, text::excerpt};

use super::{
    archive::{ArchiveOptions, Lists, check_masks, members},
    error::DatasetError,
    files::{bad, too_much},
    labels::{Labels, labels_of_numbers, labels_width},
    matrix::build_graph,
    node_dataset::{NodeDataset, NodeDatasetParts},
};
use crate::{graph::Graph, state_dict::file};

const EDGES: [&str; 1] = ["edge_index"];
const FEATURES: [&str; 2] = ["x", "feat"];
const LABELS: [&str; 2] = ["y", "label"];
const MASKS: [&str; 3] = ["train_mask", "val_mask", "test_mask"];

/// Loads a `.pt`, `.pth` or `.safetensors` graph.
///
/// ```text
/// torch.save(data.to_dict(), "cora.pt")                                        # PyG
/// torch.save({"edge_index": torch.stack(g.edges()), **g.ndata}, "cora.pt")     # DGL
/// ```
///
/// - `edge_index`: `[2, edges]`, sources and targets.
/// - `x` or `feat`: `[nodes, features]`.
/// - `y` or `label`: classes, `[nodes]` or `[nodes, 1]`; or 0 and 1, `[nodes, classes]`.
/// - `train_mask`, `val_mask`, `test_mask`: `[nodes]` or `[nodes, splits]`.
///
/// Ignores other tensors. Refuses a pickled `Data`: save `data.to_dict()`.
///
/// ```no_run
/// use sparsek_gnn::datasets::{ArchiveOptions, tensors};
///
/// let data = tensors::load("cora.pt", &ArchiveOptions::default()).unwrap();
/// assert_eq!((data.nodes(), data.feature_width(), data.classes()), (2708, 1433, 7));
/// ```
pub fn load(file: impl AsRef<Path>, options: &ArchiveOptions) -> Result<NodeDataset, DatasetError> {
    let file = file.as_ref();
    let mut tensors = Tensors::open(file)?;
    let (features, [nodes, feature_width]) = tensors.features()?;
    let labels = tensors.labels(nodes)?;
    let graph = tensors.graph(nodes, memory::product(&[features.len(), 4]), options.directed)?;
    let stored = tensors.contains(MASKS[0]);
    let read = stored.then_some(|split| tensors.masks(nodes, split));
    let lists = options.lists(file, &labels, nodes, MASKS[0], read)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let features = (features, feature_width);
    let parts = NodeDatasetParts::of(excerpt(&name), graph, features, labels, lists);
    parts.into_dataset(|_| file.to_path_buf())
}

struct Tensors<'a> {
    file: &'a Path,
    left: BTreeMap<String, Tensor>,
}

impl<'a> Tensors<'a> {
    fn open(file: &'a Path) -> Result<Self, DatasetError> {
        // Opening a pipe would wait.
        input::open(file)
            .map_err(|source| DatasetError::Io { file: file.to_path_buf(), source })?;
        let left = match file::tensors(file) {
            Some(tensors) => tensors.map_err(|reason| match excerpt(&reason) {
                reason if file.extension().is_some_and(|ending| ending == "safetensors") => reason,
                reason => format!("{reason}; torch.save(data.to_dict(), ...) writes what is read"),
            }),
            None => Err(format!("its name ends in none of {}", file::ENDINGS)),
        };
        Ok(Self { file, left: left.map_err(bad(file))? })
    }

    fn contains(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    fn bad(&self, name: &str, reason: &str) -> DatasetError {
        bad(self.file)(format!("tensor {name}: {reason}"))
    }

    fn take<'n>(
        &mut self,
        names: &[&'n str],
    ) -> Result<(&'n str, TensorData, Vec<usize>), DatasetError> {
        let found = names.iter().find_map(|&name| Some((name, self.left.remove(name)?)));
        let Some((name, tensor)) = found else {
            return Err(bad(self.file)(format!("has no tensor {}", names.join(" or "))));
        };
        let shape = tensor.shape.to_vec();
        // As stored and as numbers.
        let bytes = tensor.byte_len() as u128 + 8 * memory::product(&shape);
        memory::check(format_args!("tensor {name} of shape {shape:?}"), bytes)
            .map_err(too_much(self.file))?;
        match bridge::into_data(tensor) {
            Ok(data) => Ok((name, data, shape)),
            Err(error) => Err(self.bad(name, &excerpt(&error.to_string()))),
        }
    }

    fn features(&mut self) -> Result<(Vec<f32>, [usize; 2]), DatasetError> {
        let (name, data, shape) = self.take(&FEATURES)?;
        match *shape {
            [nodes, width] => Ok((data.iter::<f32>().collect(), [nodes, width])),
            _ => Err(self.bad(name, &format!("shape {shape:?}, [nodes, features] is needed"))),
        }
    }

    fn labels(&mut self, nodes: usize) -> Result<(Labels, usize), DatasetError> {
        let (name, data, shape) = self.take(&LABELS)?;
        let numbers: Vec<f64> = data.iter::<f64>().collect();
        labels_width(&shape, nodes)
            .and_then(|width| labels_of_numbers(&numbers, width))
            .map_err(|reason| self.bad(name, &reason))
    }

    fn graph(
        &mut self,
        nodes: usize,
        reserved: u128,
        directed: bool,
    ) -> Result<Graph, DatasetError> {
        let (name, data, shape) = self.take(&EDGES)?;
        let &[2, edges] = shape.as_slice() else {
            return Err(self.bad(name, &format!("shape {shape:?}, [2, edges] is needed")));
        };
        let ids: Vec<Option<u32>> = match data.dtype() {
            dtype if dtype.is_int() => data.iter::<i64>().map(|id| id.try_into().ok()).collect(),
            dtype if dtype.is_uint() => data.iter::<u64>().map(|id| id.try_into().ok()).collect(),
            dtype => return Err(self.bad(name, &format!("{dtype:?}, integers are needed"))),
        };
        if let Some(at) = ids.iter().position(Option::is_none) {
            let reason = format!("edge {} has a node outside 0 to 2^32 - 1", at % edges);
            return Err(self.bad(name, &reason));
        }
        let ids: Vec<u32> = ids.into_iter().flatten().collect();
        let (sources, targets) = ids.split_at(edges);
        let pairs = sources.iter().copied().zip(targets.iter().copied());
        let reserved = reserved + memory::product(&[edges, 2 * size_of::<u32>()]);
        build_graph(self.file, nodes, pairs.collect(), reserved, directed)
    }

    fn masks(&mut self, nodes: usize, split: usize) -> Result<Lists, DatasetError> {
        let mut list = |name: &'static str| {
            let (_, data, shape) = self.take(&[name])?;
            let [width, splits] = match *shape {
                [width] => [width, 1],
                [width, splits] => [width, splits],
                _ => return Err(self.bad(name, &format!("shape {shape:?}, [nodes] is needed"))),
            };
            check_masks([splits, width], nodes, split).map_err(|reason| self.bad(name, &reason))?;
            let mask: Vec<bool> = data.iter::<f64>().map(|x| x != 0.0).collect();
            Ok(members(mask.into_iter().skip(split).step_by(splits)))
        };
        let [train, val, test] = MASKS.map(&mut list);
        Ok([train?, val?, test?])
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::{fixture, rstest};
    use safetensors::{Dtype, tensor::TensorView};

    use super::*;
    use crate::datasets::{
        ArchiveSplit, Labels, RandomSplit,
        karate::karate_club,
        scratch::{Folder, empty_folder},
    };

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        empty_folder
    }

    type Stored = BTreeMap<&'static str, (Dtype, Vec<usize>, Vec<u8>)>;

    fn ints(shape: &[usize], values: &[i64]) -> (Dtype, Vec<usize>, Vec<u8>) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        (Dtype::I64, shape.to_vec(), bytes)
    }

    fn unsigned(values: &[u64; 4]) -> (Dtype, Vec<usize>, Vec<u8>) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        (Dtype::U64, vec![2, 2], bytes)
    }

    fn floats(shape: &[usize], values: &[f32]) -> (Dtype, Vec<usize>, Vec<u8>) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        (Dtype::F32, shape.to_vec(), bytes)
    }

    fn bools(shape: &[usize], values: &[u8]) -> (Dtype, Vec<usize>, Vec<u8>) {
        (Dtype::BOOL, shape.to_vec(), values.to_vec())
    }

    fn good() -> Stored {
        BTreeMap::from([
            ("edge_index", ints(&[2, 2], &[0, 2, 1, 1])),
            ("x", floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            ("y", ints(&[3], &[0, 1, 0])),
            ("train_mask", bools(&[3, 2], &[1, 0, 0, 1, 0, 0])),
            ("val_mask", bools(&[3, 2], &[0, 0, 1, 0, 0, 1])),
            ("test_mask", bools(&[3, 2], &[0, 1, 0, 0, 1, 0])),
            ("edge_attr", floats(&[2], &[7.0, 8.0])),
        ])
    }

    fn read(
        folder: &Folder,
        tensors: &Stored,
        options: &ArchiveOptions,
    ) -> Result<NodeDataset, DatasetError> {
        let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let file = folder.0.join("data.safetensors");
        fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
        load(file, options)
    }

    fn rows(data: &NodeDataset) -> [Vec<u32>; 3] {
        [0, 1, 2].map(|node| data.graph().neighbors(node).to_vec())
    }

    #[rstest]
    #[case::symmetrized(false, [vec![1], vec![0, 2], vec![1]])]
    #[case::directed(true, [vec![], vec![0, 2], vec![]])]
    fn graphs_features_labels_and_masks_are_read(
        folder: Folder,
        #[case] directed: bool,
        #[case] expected: [Vec<u32>; 3],
    ) {
        let options = ArchiveOptions { directed, split: None };
        let data = read(&folder, &good(), &options).unwrap();
        assert_eq!(rows(&data), expected);
        assert_eq!(data.features(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(data.labels(), &Labels::Classes(vec![0, 1, 0]));
        assert_eq!((data.name(), data.classes()), ("data", 2));
        assert_eq!((data.train(), data.val(), data.test()), (&[0][..], &[1][..], &[2][..]));
        let second = ArchiveOptions { split: Some(ArchiveSplit::Stored(1)), ..options };
        let data = read(&folder, &good(), &second).unwrap();
        assert_eq!((data.train(), data.val(), data.test()), (&[1][..], &[2][..], &[0][..]));
    }

    #[rstest]
    fn other_names_and_types_are_read(folder: Folder) {
        let mut tensors = good();
        for (name, other) in [("x", "feat"), ("y", "label")] {
            tensors.remove(name);
            tensors.insert(other, bools(&[3, 2], &[1, 0, 0, 1, 1, 1]));
        }
        for (name, mask) in
            [("train_mask", [1, 1, 0]), ("val_mask", [0, 0, 1]), ("test_mask", [0; 3])]
        {
            tensors.insert(name, bools(&[3], &mask));
        }
        tensors.insert("edge_index", unsigned(&[0, 2, 1, 1]));
        let data = read(&folder, &tensors, &ArchiveOptions::default()).unwrap();
        assert_eq!(rows(&data), [vec![1], vec![0, 2], vec![1]]);
        assert_eq!(data.features(), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(data.labels(), &Labels::Sets(vec![true, false, false, true, true, true]));
        assert_eq!((data.train(), data.val(), data.test()), (&[0, 1][..], &[2][..], &[][..]));
    }

    #[rstest]
    fn without_masks_the_split_is_drawn(folder: Folder) {
        let mut tensors = good();
        tensors.retain(|name, _| !MASKS.contains(name));
        let thirds = RandomSplit::Fractions { train: 0.34, val: 0.33 };
        let options =
            ArchiveOptions { split: Some(ArchiveSplit::Random(thirds, 5)), ..Default::default() };
        let data = read(&folder, &tensors, &options).unwrap();
        assert_eq!([data.train(), data.val(), data.test()].map(<[u32]>::len), [1; 3]);
        let options = ArchiveOptions { split: Some(ArchiveSplit::Stored(0)), ..options };
        let error = read(&folder, &tensors, &options).unwrap_err().to_string();
        assert!(error.contains("has no train_mask"), "{error}");
    }

    #[rstest]
    #[case::no_edges("edge_index", None, "no tensor edge_index")]
    #[case::edges("edge_index", Some(ints(&[4], &[0, 2, 1, 1])), "[2, edges] is needed")]
    #[case::below("edge_index", Some(ints(&[2, 2], &[0, -2, 1, 1])), "edge 1 has a node outside")]
    #[case::huge("edge_index", Some(unsigned(&[0, u64::MAX, 1, 1])), "edge 1 has a node outside")]
    #[case::node("edge_index", Some(ints(&[2, 2], &[0, 2, 1, 3])), "edge 1 is (2, 3)")]
    #[case::floats("edge_index", Some(floats(&[2, 1], &[0.0, 1.0])), "integers are needed")]
    #[case::no_features("x", None, "no tensor x or feat")]
    #[case::features("x", Some(floats(&[3], &[1.0; 3])), "tensor x: shape [3], [nodes, features]")]
    #[case::infinite("x", Some(floats(&[3, 1], &[f32::INFINITY; 3])), "not finite")]
    #[case::labels("y", Some(ints(&[2], &[0, 1])), "tensor y: labels have shape [2]")]
    #[case::label("y", Some(ints(&[3], &[0, 1, -1])), "node 2")]
    #[case::mask("val_mask", None, "has no tensor val_mask")]
    #[case::mask("val_mask", Some(bools(&[2], &[0, 1])), "masks of 2 nodes")]
    fn broken_files_are_refused_by_name(
        folder: Folder,
        #[case] name: &'static str,
        #[case] tensor: Option<(Dtype, Vec<usize>, Vec<u8>)>,
        #[case] word: &str,
    ) {
        let mut tensors = good();
        tensors.remove(name);
        tensors.extend(tensor.map(|tensor| (name, tensor)));
        let error = read(&folder, &tensors, &ArchiveOptions::default()).unwrap_err().to_string();
        assert!(error.contains("data.safetensors") && error.contains(word), "{error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(error.matches("data.safetensors").count(), 1, "{error}");
    }

    /// From `tests/pyg/data.py`.
    #[rstest]
    fn files_of_pyg_are_read(#[values("pt", "safetensors")] ending: &str) {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pyg");
        let split = Some(ArchiveSplit::Stored(1));
        let options = ArchiveOptions { directed: true, split };
        let data = load(format!("{fixtures}/karate.{ending}"), &options).unwrap();
        let expected = karate_club();
        assert_eq!(data.graph().pattern(), expected.graph().pattern());
        let one = |at: usize| f32::from(u8::from(at / 34 == at % 34));
        assert!(data.features().iter().enumerate().all(|(at, &x)| x == one(at)));
        assert_eq!((data.nodes(), data.feature_width(), data.classes()), (34, 34, 4));
        let train = [1, 2, 6, 7, 10, 11, 13, 14, 19, 22, 27, 28, 30, 32];
        assert_eq!(data.train(), train);
        assert_eq!(data.val(), [0, 4, 5, 8, 12, 18, 20, 24, 25, 26]);
        assert_eq!(data.test(), [3, 9, 15, 16, 17, 21, 23, 29, 31, 33]);
        assert_eq!(data.labels().classes().unwrap()[..8], [1, 1, 1, 1, 3, 3, 3, 1]);
    }

    #[rstest]
    #[case::ending("data.bin", ".safetensors, .pt")]
    #[case::no_tensors("data.pt", "torch.save(data.to_dict()")]
    fn other_files_are_refused(folder: Folder, #[case] name: &str, #[case] word: &str) {
        let file = folder.0.join(name);
        fs::write(&file, "no tensors").unwrap();
        let error = load(&file, &ArchiveOptions::default()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(word), "{error}");
        let error = load(&folder.0, &ArchiveOptions::default()).unwrap_err().to_string();
        assert!(error.contains("a folder"), "{error}");
    }
}
