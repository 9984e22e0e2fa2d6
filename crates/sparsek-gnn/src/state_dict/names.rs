use std::collections::HashSet;

use burn::{
    module::{Module, ModuleVisitor, Param},
    store::{ModuleAdapter, PyTorchToBurnAdapter},
    tensor::{Bool, DType, Int, Shape, Tensor},
};

use super::error::StateDictError;
use crate::nn::constant::Constant;

/// PyG arranges these weights otherwise.
const UNMAPPED: [&str; 3] = ["HeteroConv", "PnaConv", "SagPooling"];

/// Torch counts batches beside it.
const MEAN: &str = "running_mean";
const COUNT: &str = "num_batches_tracked";

/// Alternative lists of shared names. Writes the first, reads any.
pub struct Names(pub Vec<Vec<String>>);

impl Names {
    pub fn written(&self) -> impl Iterator<Item = &String> {
        self.0.iter().take(1).flatten()
    }
}

/// PyG's arrangement.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    Same,
    /// `[in, out]` here, `[out, in]` there.
    Transposed,
    /// `[heads, width]` here, `[1, heads, width]` there.
    Heads,
    /// `[1, width]` here, `[width]` there.
    Row,
}

pub struct Parameter {
    /// Burn's path.
    pub path: String,
    pub names: Names,
    pub layout: Layout,
    /// Shape here.
    pub shape: Shape,
    pub dtype: DType,
}

impl Parameter {
    pub fn pyg_shape(&self) -> Vec<usize> {
        let own = self.shape.iter().copied();
        match self.layout {
            Layout::Same => own.collect(),
            Layout::Transposed => own.rev().collect(),
            Layout::Heads => std::iter::once(1).chain(own).collect(),
            Layout::Row => own.skip(1).collect(),
        }
    }
}

#[derive(Default)]
pub struct Contents {
    pub parameters: Vec<Parameter>,
    /// Names, values.
    pub constants: Vec<(Names, f64)>,
    /// Torch's batch counts; affect no result.
    pub counts: Vec<String>,
}

impl Contents {
    pub fn of<M: Module>(model: &M) -> Result<Self, StateDictError> {
        let mut walk = Walk::default();
        model.visit(&mut walk);
        let mut contents = Self::default();
        for Leaf { steps, shape, dtype } in &walk.leaves {
            if let Some(depth) = steps.iter().position(|step| UNMAPPED.contains(&step.layer())) {
                let (path, layer) = (path(&steps[..depth]), steps[depth].layer().to_string());
                return Err(StateDictError::Layer { path, layer });
            }
            let names = walk.names(steps);
            if steps.last().is_some_and(|step| step.is("BatchNorm", MEAN)) {
                let name = names.written().map(|name| name.replace(MEAN, COUNT));
                contents.counts.extend(name);
            }
            let (shape, dtype) = (shape.clone(), *dtype);
            let (path, layout) = (path(steps), layout(steps));
            contents.parameters.push(Parameter { path, names, layout, shape, dtype });
        }
        for (steps, value) in &walk.constants {
            // GIN's eps, unless trained.
            let parent = steps.split_last().map_or_else(String::new, |(_, parents)| path(parents));
            if walk.empty.contains(&joined(&parent, "trained")) {
                contents.constants.push((walk.names(steps), *value));
            }
        }
        Ok(contents)
    }
}

#[derive(Clone)]
struct Step {
    field: String,
    container: String,
}

impl Step {
    fn layer(&self) -> &str {
        self.container.strip_prefix("Struct:").unwrap_or_default()
    }

    fn is(&self, layer: &str, field: &str) -> bool {
        self.layer() == layer && self.field == field
    }
}

fn path(steps: &[Step]) -> String {
    let fields: Vec<&str> = steps.iter().map(|step| step.field.as_str()).collect();
    fields.join(".")
}

fn layout(steps: &[Step]) -> Layout {
    let Some(last) = steps.last() else {
        return Layout::Same;
    };
    match (last.layer(), last.field.as_str()) {
        ("Linear", "weight") => Layout::Transposed,
        ("GatConv", "source" | "target") | ("GatV2Conv", "attention") => Layout::Heads,
        ("EdgeScores", "vectors") => Layout::Heads,
        ("GraphNorm", _) => Layout::Row,
        _ => Layout::Same,
    }
}

struct Leaf {
    steps: Vec<Step>,
    shape: Shape,
    dtype: DType,
}

#[derive(Default)]
struct Walk {
    steps: Vec<Step>,
    /// Leaves before each step.
    before: Vec<usize>,
    leaves: Vec<Leaf>,
    constants: Vec<(Vec<Step>, f64)>,
    /// Paths without parameters.
    empty: HashSet<String>,
}

impl Walk {
    fn names(&self, steps: &[Step]) -> Names {
        let mut alternatives = vec![vec![String::new()]];
        for (depth, step) in steps.iter().enumerate() {
            let parts = self.parts(&steps[..depth], step);
            let pairs =
                alternatives.iter().flat_map(|shared| parts.iter().map(move |p| (shared, p)));
            let longer = |(shared, parts): (&Vec<String>, &Vec<String>)| -> Vec<String> {
                shared.iter().flat_map(|name| parts.iter().map(move |p| joined(name, p))).collect()
            };
            alternatives = pairs.map(longer).collect();
        }
        Names(alternatives)
    }

    /// Alternatives, each with all of PyG's copies.
    fn parts(&self, parents: &[Step], step: &Step) -> Vec<Vec<String>> {
        if step.container.starts_with("Enum:") {
            return vec![vec![String::new()]];
        }
        let parts = self.renamed(parents, step);
        if parts.is_empty() {
            let torch =
                PyTorchToBurnAdapter.get_alternative_param_name(&step.field, &step.container);
            let own = || step.field.trim_start_matches("r#").to_string();
            return vec![vec![torch.unwrap_or_else(own)]];
        }
        let owned = |shared: &&[&str]| shared.iter().map(|part| part.to_string()).collect();
        parts.iter().map(owned).collect()
    }

    /// Empty for other fields.
    fn renamed(&self, parents: &[Step], step: &Step) -> &'static [&'static [&'static str]] {
        let lacks = |field| self.empty.contains(&joined(&path(parents), field));
        let inside = |field| parents.last().is_some_and(|parent| parent.is("Set2Set", field));
        match (step.layer(), step.field.as_str()) {
            ("PlainModel", "convolutions") => &[&["convs"]],
            ("GcnConv" | "SgConv", "linear") | ("SageConv", "project") => &[&["lin"]],
            ("SageConv", "neighbours") => &[&["lin_l"]],
            ("SageConv", "root") => &[&["lin_r"]],
            // Second: PyG before 2.5.
            ("GatConv", "linear") if lacks("target_linear") => &[&["lin"], &["lin_src", "lin_dst"]],
            ("GatConv", "linear") => &[&["lin_src"]],
            ("GatConv", "target_linear") => &[&["lin_dst"]],
            ("GatConv", "source") => &[&["att_src"]],
            ("GatConv", "target") => &[&["att_dst"]],
            ("GatConv", "edge") => &[&[""]],
            ("EdgeScores", "linear") => &[&["lin_edge"]],
            ("EdgeScores", "vectors") => &[&["att_edge"]],
            ("GatV2Conv", "source") if lacks("target") => &[&["lin_l", "lin_r"]],
            ("GatV2Conv", "source") => &[&["lin_l"]],
            ("GatV2Conv", "target") => &[&["lin_r"]],
            ("GatV2Conv" | "TransformerConv", "edge") => &[&["lin_edge"]],
            ("GatV2Conv", "attention") => &[&["att"]],
            ("GinConv", "trained") => &[&["eps"]],
            ("GinConv", "mlp") => &[&["nn"]],
            ("GinMlp", "first") => &[&["lins.0"], &["0"]],
            ("GinMlp", "second") => &[&["lins.1"], &["2"]],
            ("GraphConv", "neighbors") => &[&["lin_rel"]],
            ("GraphConv", "root") => &[&["lin_root"]],
            ("ChebConv", "terms") => &[&["lins"]],
            ("TransformerConv", "key") => &[&["lin_key"]],
            ("TransformerConv", "query") => &[&["lin_query"]],
            ("TransformerConv", "value") => &[&["lin_value"]],
            ("TransformerConv", "root") => &[&["lin_skip"]],
            ("RgcnConv", "weights") => &[&["weight"]],
            ("RgcnConv", "shares") => &[&["comp"]],
            ("TopkPooling", "projection") => &[&["select.weight"]],
            ("Set2Set", _) => &[&["lstm"]],
            ("Linear", "weight") if inside("input") => &[&["weight_ih_l0"]],
            ("Linear", "bias") if inside("input") => &[&["bias_ih_l0"]],
            ("Linear", "weight") if inside("hidden") => &[&["weight_hh_l0"]],
            ("Linear", "bias") if inside("hidden") => &[&["bias_hh_l0"]],
            _ => &[],
        }
    }

    fn leaf(&mut self, shape: Shape, dtype: DType) {
        self.leaves.push(Leaf { steps: self.steps.clone(), shape, dtype });
    }
}

fn joined(name: &str, part: &str) -> String {
    match (name, part) {
        ("", only) | (only, "") => only.to_string(),
        _ => format!("{name}.{part}"),
    }
}

impl ModuleVisitor for Walk {
    fn enter_module(&mut self, name: &str, container: &str) {
        if container == Constant::CONTAINER
            && let Ok(value) = name.parse()
        {
            self.constants.push((self.steps.clone(), value));
        }
        self.steps.push(Step { field: name.to_string(), container: container.to_string() });
        self.before.push(self.leaves.len());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        if self.before.pop() == Some(self.leaves.len()) {
            self.empty.insert(path(&self.steps));
        }
        self.steps.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // Loading replaces undrawn values.
        let dtype = match param.is_initialized() {
            true => param.val().dtype(),
            false => param.lazy_device().settings().float_dtype.into(),
        };
        self.leaf(param.lazy_shape(), dtype);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.leaf(param.lazy_shape(), param.val().dtype());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.leaf(param.lazy_shape(), param.val().dtype());
    }
}
