use burn::backend::{
    Backend, TensorMetadata,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind, unary},
};

use super::tracking::finish;
use crate::ops::{Bounds, DrawSpec, IndexMap, TopkGradientOps, TopkOps, TopkSpec, VectorSpec};

#[derive(Debug)]
struct TopkGradient;

impl<B: Backend + TopkGradientOps> Backward<B, 1> for TopkGradient {
    type State = (IntTensor<B>, usize);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (indices, cols) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::scatter_selected(grad, indices, cols)
        });
    }
}

#[derive(Debug)]
struct MaskGradient;

impl<B: Backend + TopkGradientOps> Backward<B, 1> for MaskGradient {
    type State = IntTensor<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        unary::<B, _>(ops.parents, ops.node, grads, |grad| B::keep_selected(grad, ops.state));
    }
}

fn inner<B: Backend, C: CheckpointStrategy>(bounds: Bounds<Autodiff<B, C>>) -> Bounds<B> {
    match bounds {
        Bounds::Whole => Bounds::Whole,
        Bounds::Lengths(lengths) => Bounds::Lengths(lengths),
        Bounds::Between { starts, ends } => Bounds::Between { starts, ends },
    }
}

fn last_dim(shape: &burn::tensor::Shape) -> usize {
    shape[shape.num_dims() - 1]
}

impl<B: Backend + TopkOps + TopkGradientOps, C: CheckpointStrategy> TopkOps for Autodiff<B, C> {
    fn topk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let cols = last_dim(&input.shape());
        let node = input.node();
        let (values, indices) = B::topk_float(input.into_primitive(), inner(bounds), spec);
        let kind = TopkGradient.prepare::<C>([node]).compute_bound().stateful();
        let values = finish(kind, (indices.clone(), cols), values);
        (values, indices)
    }

    fn topk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        B::topk_int(input, inner(bounds), spec)
    }

    fn argtopk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        B::argtopk_float(input.into_primitive(), inner(bounds), spec)
    }

    fn argtopk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        B::argtopk_int(input, inner(bounds), spec)
    }

    fn topk_mask(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self> {
        let node = input.node();
        let input = input.into_primitive();
        let bounds = inner(bounds);
        match MaskGradient.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, indices) = B::topk_mask_indices(input, bounds, spec);
                prep.finish(indices, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::topk_mask(input, bounds, spec)),
        }
    }

    fn remap(indices: IntTensor<Self>, map: IndexMap<Self>, page: usize) -> IntTensor<Self> {
        let map = match map {
            IndexMap::Offsets(offsets) => IndexMap::Offsets(offsets),
            IndexMap::Pages(pages) => IndexMap::Pages(pages),
            IndexMap::Both { pages, offsets } => IndexMap::Both { pages, offsets },
        };
        B::remap(indices, map, page)
    }

    fn draw(logits: FloatTensor<Self>, spec: DrawSpec) -> IntTensor<Self> {
        B::draw(logits.into_primitive(), spec)
    }

    fn topk_vector_float(
        input: FloatTensor<Self>,
        spec: VectorSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let length = last_dim(&input.shape());
        let node = input.node();
        let (values, indices) = B::topk_vector_float(input.into_primitive(), spec);
        let kind = TopkGradient.prepare::<C>([node]).compute_bound().stateful();
        let values = finish(kind, (indices.clone(), length), values);
        (values, indices)
    }

    fn topk_vector_int(
        input: IntTensor<Self>,
        spec: VectorSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        B::topk_vector_int(input, spec)
    }
}
