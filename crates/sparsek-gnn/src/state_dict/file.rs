use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use burn::{
    store::{ModuleStore, PytorchStore, SafetensorsStore, bridge, burn_pack},
    tensor::{DType, TensorData},
};
use safetensors::{Dtype, tensor::TensorView};
use sparsek::io::output;

use super::{error::StateDictError, names::Names};

type Rename<'a> = &'a dyn Fn(&str) -> String;

/// Tensors of one value.
pub type Found = Vec<burn_pack::Tensor>;

pub const ENDINGS: &str = ".safetensors, .pt or .pth";

/// Unread tensors; None for other endings.
pub fn tensors(path: &Path) -> Option<Result<BTreeMap<String, burn_pack::Tensor>, String>> {
    match extension(path) {
        "safetensors" => {
            let mut store = SafetensorsStore::from_file(path);
            Some(store.get_all_tensors().cloned().map_err(|error| error.to_string()))
        }
        "pt" | "pth" => {
            let mut store = PytorchStore::from_file(path).map_indices_contiguous(false);
            Some(store.get_all_tensors().cloned().map_err(|error| error.to_string()))
        }
        _ => None,
    }
}

pub struct Reading<'a> {
    file: PathBuf,
    rename: Rename<'a>,
    left: BTreeMap<String, burn_pack::Tensor>,
    missing: Vec<String>,
}

impl<'a> Reading<'a> {
    pub fn open(path: &Path, rename: Rename<'a>) -> Result<Self, StateDictError> {
        let file = path.to_path_buf();
        let Some(tensors) = tensors(path) else {
            return Err(StateDictError::Extension { file, expected: ENDINGS });
        };
        match tensors {
            Ok(left) => Ok(Self { file, rename, left, missing: Vec::new() }),
            Err(reason) => Err(StateDictError::Read { file, reason }),
        }
    }

    /// Takes the first alternative, or none.
    pub fn take(&mut self, names: &Names) -> Found {
        for shared in &names.0 {
            let tensors = shared.iter().filter_map(|name| self.left.remove(&(self.rename)(name)));
            let found: Found = tensors.collect();
            if !found.is_empty() {
                return found;
            }
        }
        self.missing.extend(names.written().take(1).map(|name| (self.rename)(name)));
        Vec::new()
    }

    pub fn skip(&mut self, names: &[String]) {
        for name in names {
            self.left.remove(&(self.rename)(name));
        }
    }

    /// Refuses missing or unused tensors.
    pub fn finish(self) -> Result<Matched, StateDictError> {
        let Self { file, left, missing, .. } = self;
        let unused: Vec<String> = left.into_keys().collect();
        match missing.is_empty() && unused.is_empty() {
            true => Ok(Matched { file }),
            false => Err(StateDictError::Names { missing, unused }),
        }
    }
}

pub struct Matched {
    file: PathBuf,
}

impl Matched {
    pub fn failed(&self, reason: String) -> StateDictError {
        StateDictError::Read { file: self.file.clone(), reason }
    }

    pub fn data(
        &self,
        found: Found,
        shape: &[usize],
        dtype: DType,
    ) -> Result<TensorData, StateDictError> {
        let mut first: Option<(String, TensorData)> = None;
        for tensor in found {
            let (name, found) = (tensor.name.clone(), tensor.dtype);
            if tensor.shape.as_slice() != shape {
                let (expected, found) = (shape.to_vec(), tensor.shape.to_vec());
                return Err(StateDictError::Shape { name, expected, found });
            }
            let data = bridge::into_data(tensor).map_err(|error| self.failed(error.to_string()))?;
            let converts = found == dtype || (found.is_float() && dtype.is_float());
            let data = match converts.then(|| data.try_cast(dtype)) {
                Some(Ok(data)) => data,
                _ => return Err(StateDictError::Dtype { name, expected: dtype, found }),
            };
            match &first {
                None => first = Some((name, data)),
                Some((_, same)) if same.as_bytes() == data.as_bytes() => {}
                Some((first, _)) => {
                    let first = first.clone();
                    return Err(StateDictError::Shared { first, second: name });
                }
            }
        }
        first.map(|(_, data)| data).ok_or_else(|| self.failed("no tensor".to_string()))
    }

    /// Compares in f32.
    pub fn check_constant(&self, found: Found, expected: f64) -> Result<(), StateDictError> {
        let name = found.first().map_or_else(String::new, |tensor| tensor.name.clone());
        let data = self.data(found, &[1], DType::F32)?;
        let found = data.iter::<f32>().next().unwrap_or(f32::NAN);
        match found == expected as f32 {
            true => Ok(()),
            false => Err(StateDictError::Constant { name, expected, found: found.into() }),
        }
    }
}

pub struct Writing<'a> {
    file: PathBuf,
    rename: Rename<'a>,
    tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl<'a> Writing<'a> {
    pub fn new(path: &Path, rename: Rename<'a>) -> Result<Self, StateDictError> {
        let file = path.to_path_buf();
        match extension(path) {
            "safetensors" => Ok(Self { file, rename, tensors: BTreeMap::new() }),
            _ => Err(StateDictError::Extension { file, expected: ".safetensors" }),
        }
    }

    pub fn failed(&self, reason: String) -> StateDictError {
        StateDictError::Write { file: self.file.clone(), reason }
    }

    pub fn add(
        &mut self,
        names: &Names,
        shape: &[usize],
        data: &TensorData,
    ) -> Result<(), StateDictError> {
        let dtype = match data.dtype() {
            DType::F64 => Dtype::F64,
            DType::F32 | DType::Flex32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::I64 => Dtype::I64,
            DType::I32 => Dtype::I32,
            other => return Err(self.failed(format!("safetensors has no {other:?}"))),
        };
        for name in names.written() {
            self.insert(name, (dtype, shape.to_vec(), data.as_bytes().to_vec()))?;
        }
        Ok(())
    }

    /// Adds zero batch counts.
    pub fn add_counts(&mut self, names: &[String]) -> Result<(), StateDictError> {
        let zero = 0i64.to_le_bytes().to_vec();
        names.iter().try_for_each(|name| self.insert(name, (Dtype::I64, Vec::new(), zero.clone())))
    }

    fn insert(
        &mut self,
        name: &str,
        tensor: (Dtype, Vec<usize>, Vec<u8>),
    ) -> Result<(), StateDictError> {
        let name = (self.rename)(name);
        match self.tensors.insert(name.clone(), tensor) {
            None => Ok(()),
            Some(_) => Err(StateDictError::Duplicate { name }),
        }
    }

    pub fn finish(self) -> Result<(), StateDictError> {
        let mut views = Vec::with_capacity(self.tensors.len());
        for (name, (dtype, shape, bytes)) in &self.tensors {
            views.push(TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name, view)));
        }
        let views: Result<Vec<_>, _> = views.into_iter().collect();
        let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
        let bytes = views.and_then(|views| safetensors::serialize(views, Some(metadata)));
        let bytes = bytes.map_err(|error| self.failed(error.to_string()))?;
        output::write(&self.file, &bytes).map_err(|error| self.failed(error.to_string()))
    }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}
