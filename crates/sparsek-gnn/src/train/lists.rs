//! The elements of a model's parameters, or of their gradients, as one list, which a collective takes in one call.
use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{DType, Tensor},
};

/// The parameters of a model, outside autodiff, each under its name.
pub(super) fn parameters<M: Module>(model: &M) -> GradientsParams {
    let mut taken = Taken(GradientsParams::new());
    model.visit(&mut taken);
    taken.0
}

/// The model with these parameters.
pub(super) fn with_parameters<M: Module>(model: M, values: GradientsParams) -> M {
    model.map(&mut Put(values))
}

/// Lists are filled up to a multiple of so many elements. Burn's `all_reduce` takes as many elements as the buffer has, which the
/// device may have made longer than the tensor, and lists that are not equally long are mixed up, or waited for without end.
const BLOCK: usize = 256;

/// The elements of all values, in the order of the model's parameters, those of `last`, and zeros: f64 where one of them is, else f32,
/// which holds those of lesser types exactly.
pub(super) fn join<M: Module>(
    model: &M,
    values: &GradientsParams,
    last: Option<Tensor<1>>,
) -> Tensor<1> {
    let mut pieces = Pieces {
        values,
        found: Vec::new(),
    };
    model.visit(&mut pieces);
    let found: Vec<Tensor<1>> = pieces.found.into_iter().chain(last).collect();
    let wide = found.iter().any(|piece| piece.dtype() == DType::F64);
    let dtype = if wide { DType::F64 } else { DType::F32 };
    let mut found: Vec<Tensor<1>> = found.into_iter().map(|piece| piece.cast(dtype)).collect();
    let length: usize = found.iter().map(|piece| piece.dims()[0]).sum();
    let rest = length.next_multiple_of(BLOCK) - length;
    if let Some(piece) = found.first().filter(|_| rest > 0) {
        found.push(Tensor::zeros([rest], (&piece.device(), dtype)));
    }
    Tensor::cat(found, 0)
}

/// The values with the elements of such a list, and what follows them there.
pub(super) fn split<M: Module>(
    model: &M,
    values: GradientsParams,
    list: Tensor<1>,
) -> (GradientsParams, Option<Tensor<1>>) {
    let mut spread = Spread {
        values,
        list,
        taken: 0,
    };
    model.visit(&mut spread);
    let left = spread.list.dims()[0] - spread.taken;
    let rest = (left > 0).then(|| spread.take(left));
    (spread.values, rest)
}

struct Taken(GradientsParams);

impl ModuleVisitor for Taken {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.register(param.id, param.val().without_autodiff());
    }
}

struct Put(GradientsParams);

impl ModuleMapper for Put {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(value) = self.0.remove::<D>(param.id) else {
            return param;
        };
        param.map(|before| {
            let mut value = Tensor::from_inner(value);
            if let Some(strategy) = before.gradient_checkpointing_strategy() {
                value = value.with_gradient_checkpointing_strategy(strategy);
            }
            value.set_require_grad(before.is_require_grad())
        })
    }
}

struct Pieces<'a> {
    values: &'a GradientsParams,
    found: Vec<Tensor<1>>,
}

impl ModuleVisitor for Pieces<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(value) = self.values.get::<D>(param.id) {
            let length = value.shape().num_elements();
            self.found.push(value.reshape([length]));
        }
    }
}

struct Spread {
    values: GradientsParams,
    list: Tensor<1>,
    taken: usize,
}

impl Spread {
    fn take(&mut self, length: usize) -> Tensor<1> {
        let first = self.taken;
        self.taken += length;
        self.list.clone().narrow(0, first, length)
    }
}

impl ModuleVisitor for Spread {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(own) = self.values.remove::<D>(param.id) {
            let piece = self.take(own.shape().num_elements());
            let value = piece.reshape(own.dims()).cast(own.dtype());
            self.values.register(param.id, value);
        }
    }
}
