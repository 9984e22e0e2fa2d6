use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{DType, Tensor},
};

/// Keeps parameter ids.
pub(super) fn copy_in<M: Module>(model: &M, dtype: DType) -> M {
    model.clone().map(&mut Conversion(dtype))
}

/// Copies share untrained numbers, such as running statistics.
pub(super) fn has_untrained<M: Module>(model: &M) -> bool {
    let mut found = Untrained(false);
    model.visit(&mut found);
    found.0
}

struct Untrained(bool);

impl ModuleVisitor for Untrained {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0 |= !param.is_require_grad();
    }
}

struct Conversion(DType);

impl ModuleMapper for Conversion {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|before| {
            if !before.device().is_autodiff() {
                return before.cast(self.0);
            }
            // A leaf's gradient has its dtype.
            let trained = before.is_require_grad();
            let copy = Tensor::from_inner(before.without_autodiff().cast(self.0));
            copy.set_require_grad(trained)
        })
    }
}

pub(super) fn gradients_for<M: Module>(model: &M, gradients: GradientsParams) -> GradientsParams {
    let mut converted = GradientConversion(gradients);
    model.visit(&mut converted);
    converted.0
}

struct GradientConversion(GradientsParams);

impl ModuleVisitor for GradientConversion {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.0.remove::<D>(param.id) {
            self.0.register(param.id, gradient.cast(param.val().dtype()));
        }
    }
}
