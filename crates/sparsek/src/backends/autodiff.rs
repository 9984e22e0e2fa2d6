//! Gradients: the backward pass of a selection scatters the gradient of the members to where they
//! came from; that of a sparse product multiplies with the transposed pattern.

mod distance;
mod maximum;

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

use crate::ops::{GradientOps, Lengths, SparsekOps, TopkSpec};

/// `(indices, row length)` of a selection.
#[derive(Debug)]
struct TopkGradient;

impl<B: Backend + GradientOps> Backward<B, 1> for TopkGradient {
    type State = (IntTensor<B>, usize);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (indices, cols) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::scatter_members(grad, indices, cols)
        });
    }
}

#[derive(Debug)]
struct MaskGradient;

impl<B: Backend + GradientOps> Backward<B, 1> for MaskGradient {
    type State = IntTensor<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::keep_members(grad, ops.state)
        });
    }
}

/// The pattern and its transpose, as [`SparsekOps::spmm`] takes them.
struct Patterns<B: Backend> {
    indptr: IntTensor<B>,
    indices: IntTensor<B>,
    transposed_indptr: IntTensor<B>,
    transposed_indices: IntTensor<B>,
}

impl<B: Backend> Clone for Patterns<B> {
    fn clone(&self) -> Self {
        Self {
            indptr: self.indptr.clone(),
            indices: self.indices.clone(),
            transposed_indptr: self.transposed_indptr.clone(),
            transposed_indices: self.transposed_indices.clone(),
        }
    }
}

impl<B: Backend> std::fmt::Debug for Patterns<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Patterns")
    }
}

#[derive(Debug)]
struct SpmmGradient;

impl<B: Backend + SparsekOps> Backward<B, 1> for SpmmGradient {
    type State = Patterns<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let state = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::spmm(
                grad,
                state.transposed_indptr,
                state.transposed_indices,
                state.indptr,
                state.indices,
            )
        });
    }
}

#[derive(Debug)]
struct WeightedGradient;

impl<B: Backend + GradientOps> Backward<B, 2> for WeightedGradient {
    /// Patterns, the transposed entries, and `x` and the weights where the other's gradient needs them.
    type State = (
        Patterns<B>,
        IntTensor<B>,
        Option<FloatTensor<B>>,
        Option<FloatTensor<B>>,
    );

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (patterns, entries, x, weights) = ops.state;
        let [node_x, node_weights] = ops.parents;
        let grad = grads.consume::<B>(&ops.node);
        if let (Some(node), Some(weights)) = (node_x, weights) {
            let grad_x = B::spmm_entries(
                grad.clone(),
                weights,
                patterns.transposed_indptr.clone(),
                patterns.transposed_indices.clone(),
                entries,
            );
            grads.register::<B>(node.id, grad_x);
        }
        if let (Some(node), Some(x)) = (node_weights, x) {
            let grad_weights = B::sddmm(grad, x, patterns.indptr, patterns.indices);
            grads.register::<B>(node.id, grad_weights);
        }
    }
}

/// The lengths on the backend beneath: integers have no gradient.
fn inner<B: Backend, C: CheckpointStrategy>(lengths: Lengths<Autodiff<B, C>>) -> Lengths<B> {
    match lengths {
        Lengths::Whole => Lengths::Whole,
        Lengths::Each(lengths) => Lengths::Each(lengths),
    }
}

fn last_dim(shape: &burn::tensor::Shape) -> usize {
    shape[shape.num_dims() - 1]
}

impl<B: Backend + SparsekOps + GradientOps, C: CheckpointStrategy> SparsekOps for Autodiff<B, C> {
    fn topk_float(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let cols = last_dim(&input.shape());
        let node = input.node();
        let (values, indices) = B::topk_float(input.into_primitive(), inner(lengths), spec);
        let values = match TopkGradient.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((indices.clone(), cols), values),
            OpsKind::UnTracked(prep) => prep.finish(values),
        };
        (values, indices)
    }

    fn topk_int(
        input: IntTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        B::topk_int(input, inner(lengths), spec)
    }

    fn argtopk_float(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        B::argtopk_float(input.into_primitive(), inner(lengths), spec)
    }

    fn argtopk_int(
        input: IntTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        B::argtopk_int(input, inner(lengths), spec)
    }

    fn topk_mask(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self> {
        let node = input.node();
        let input = input.into_primitive();
        let lengths = inner(lengths);
        match MaskGradient.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, indices) = B::topk_mask_indices(input, lengths, spec);
                prep.finish(indices, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::topk_mask(input, lengths, spec)),
        }
    }

    fn spmm(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let node = x.node();
        let patterns = Patterns::<B> {
            indptr,
            indices,
            transposed_indptr,
            transposed_indices,
        };
        let state = patterns.clone();
        let output = B::spmm(
            x.into_primitive(),
            patterns.indptr,
            patterns.indices,
            patterns.transposed_indptr,
            patterns.transposed_indices,
        );
        match SpmmGradient.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn spmm_weighted(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weights.node()];
        let x = x.into_primitive();
        let weights = weights.into_primitive();
        let patterns = Patterns::<B> {
            indptr,
            indices,
            transposed_indptr,
            transposed_indices,
        };
        let state = patterns.clone();
        let entries = transposed_entries.clone();
        let output = B::spmm_weighted(
            x.clone(),
            weights.clone(),
            patterns.indptr,
            patterns.indices,
            patterns.transposed_indptr,
            patterns.transposed_indices,
            transposed_entries,
        );
        match WeightedGradient
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish((state, entries, Some(x), Some(weights)), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}
