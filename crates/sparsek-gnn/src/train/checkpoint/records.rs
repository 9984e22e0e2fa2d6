//! Records are checked first: Burn adopts their element types, and `burn-optim` panics on wrong
//! shapes.

use std::collections::{BTreeMap, BTreeSet};

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::{ModuleOptimizer, OptimizerRecord},
    store::ModuleRecord,
    tensor::{Bool, Bytes, DType, Int, Tensor},
};
use burn_pack::{Reader, Scalar, Tensor as Entry};

pub(super) fn load_model<M: Module>(bytes: Bytes, model: M) -> Result<M, String> {
    let bytes = bytes.shared();
    let mut wanted = Parameters::default();
    model.visit(&mut wanted);
    let tensors = Reader::from_bytes(bytes.clone()).and_then(Reader::into_tensors);
    let mut ids = BTreeSet::new();
    let mut missing = wanted.found;
    for tensor in tensors.map_err(|error| error.to_string())? {
        let name = &tensor.name;
        let parameter =
            missing.remove(name).ok_or_else(|| format!("the model has no parameter {name:?}"))?;
        compare(name, &parameter, tensor.dtype, &tensor.shape.to_vec())?;
        let id = tensor.param_id;
        let new = id.is_some_and(|id| ids.insert(id));
        if !new {
            return Err(format!("parameter {name:?} has no id of its own"));
        }
    }
    if let Some((name, _)) = missing.first_key_value() {
        return Err(format!("parameter {name:?} of the model is missing"));
    }
    let record = ModuleRecord::from_bytes(bytes).map_err(|error| error.to_string())?;
    let model = model.try_load_record(record);
    model.map_err(|error| error.to_string())
}

/// `own`: the caller's optimizer.
pub(super) fn load_optimizer<M: Module>(
    bytes: Bytes,
    model: &M,
    optimizer: ModuleOptimizer,
    own: bool,
) -> Result<ModuleOptimizer, String> {
    let bytes = bytes.shared();
    let mut parameters = Parameters { live: true, ..Parameters::default() };
    model.visit(&mut parameters);
    let by_id: BTreeMap<u64, &Parameter> = parameters.found.values().map(|p| (p.id, p)).collect();
    let reader = Reader::from_bytes(bytes.clone()).map_err(|error| error.to_string())?;
    let (scalars, paths) = (reader.scalars().clone(), reader.metadata().clone());
    let tensors = reader.into_tensors().map_err(|error| error.to_string())?;

    match own {
        true => check_entries(&tensors, &scalars, &by_id)?,
        false => check_adam(&tensors, &scalars, &by_id)?,
    }
    for id in paths.keys() {
        let known = id.parse().is_ok_and(|id: u64| by_id.contains_key(&id));
        if !known {
            return Err(unknown(id));
        }
    }
    let record = OptimizerRecord::from_bytes(bytes).map_err(|error| error.to_string())?;
    Ok(optimizer.load_record(record))
}

fn check_adam(
    tensors: &[Entry],
    scalars: &BTreeMap<String, Scalar>,
    by_id: &BTreeMap<u64, &Parameter>,
) -> Result<(), String> {
    // Entries of this Burn version.
    let mut missing: BTreeSet<String> = BTreeSet::new();
    for id in tensors.iter().filter_map(|tensor| tensor.param_id) {
        for part in [FIRST, SECOND, TIME, RANK] {
            missing.insert(format!("{id}.{part}"));
        }
    }
    if missing.is_empty() && !by_id.is_empty() {
        return Err("it holds no state".to_string());
    }
    for tensor in tensors {
        let name = &tensor.name;
        let id = tensor.param_id.ok_or_else(|| unknown(name))?;
        let parameter = by_id.get(&id).ok_or_else(|| unknown(name))?;
        let own = [FIRST, SECOND].map(|part| format!("{id}.{part}"));
        if !own.contains(name) || !missing.remove(name) {
            return Err(unknown(name));
        }
        compare(name, parameter, tensor.dtype, &tensor.shape.to_vec())?;
    }
    for (name, &value) in scalars {
        if !missing.remove(name) {
            return Err(unknown(name));
        }
        let (id, part) = name.split_once('.').ok_or_else(|| unknown(name))?;
        let parameter = id.parse().ok().and_then(|id: u64| by_id.get(&id));
        let parameter = parameter.ok_or_else(|| unknown(name))?;
        let right = match part {
            RANK => value == Scalar::UInt(parameter.shape.len() as u64),
            _ => matches!(value, Scalar::UInt(steps) if (1..i32::MAX as u64).contains(&steps)),
        };
        if !right {
            return Err(format!("entry {name:?} has an impossible value"));
        }
    }
    if let Some(name) = missing.first() {
        return Err(format!("entry {name:?} is missing"));
    }
    Ok(())
}

/// Every entry belongs to a parameter and, at equal rank, has its shape.
fn check_entries(
    tensors: &[Entry],
    scalars: &BTreeMap<String, Scalar>,
    by_id: &BTreeMap<u64, &Parameter>,
) -> Result<(), String> {
    for tensor in tensors {
        let parameter = tensor.param_id.and_then(|id| by_id.get(&id));
        let parameter = parameter.ok_or_else(|| unknown(&tensor.name))?;
        if tensor.shape.rank() == parameter.shape.len() {
            compare(&tensor.name, parameter, tensor.dtype, &tensor.shape.to_vec())?;
        }
    }
    for (name, &value) in scalars {
        let id = name.split_once('.').and_then(|(id, _)| id.parse::<u64>().ok());
        let parameter = id.and_then(|id| by_id.get(&id)).ok_or_else(|| unknown(name))?;
        let rank = Scalar::UInt(parameter.shape.len() as u64);
        if name.ends_with(RANK) && value != rank {
            return Err(format!("entry {name:?} has an impossible value"));
        }
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    format!("entry {name:?} belongs to no parameter of the model")
}

const FIRST: &str = "momentum.moment_1";
const SECOND: &str = "momentum.moment_2";
const TIME: &str = "momentum.time";
const RANK: &str = "__rank";

fn compare(name: &str, parameter: &Parameter, dtype: DType, shape: &[usize]) -> Result<(), String> {
    let (wanted, found) = ((parameter.dtype, &parameter.shape[..]), (dtype, shape));
    match wanted == found {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is {:?} of {:?}, the model has {:?} of {:?}",
            found.1, found.0, wanted.1, wanted.0
        )),
    }
}

struct Parameter {
    id: u64,
    shape: Vec<usize>,
    dtype: DType,
}

#[derive(Default)]
struct Parameters {
    /// Types in use, not recorded.
    live: bool,
    path: Vec<String>,
    found: BTreeMap<String, Parameter>,
}

impl Parameters {
    fn add(&mut self, id: u64, shape: Vec<usize>, dtype: DType) {
        let parameter = Parameter { id, shape, dtype };
        self.found.insert(self.path.join("."), parameter);
    }
}

impl ModuleVisitor for Parameters {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = match self.live {
            true => param.val(),
            false => param.transform_for_save().val(),
        };
        self.add(param.id.val(), value.dims().to_vec(), value.dtype());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        let value = match self.live {
            true => param.val(),
            false => param.transform_for_save().val(),
        };
        self.add(param.id.val(), value.dims().to_vec(), value.dtype());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        let value = match self.live {
            true => param.val(),
            false => param.transform_for_save().val(),
        };
        self.add(param.id.val(), value.dims().to_vec(), value.dtype());
    }
}
