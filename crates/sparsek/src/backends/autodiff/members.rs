//! Gradients of linear layers of compressed rows, which keep the members alone.

use burn::backend::{
    Backend, TensorMetadata,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops},
};

use super::finish;
use crate::ops::{MemberGradientOps, MemberOps};

#[derive(Debug)]
struct LinearGradient;

/// What the gradient needs.
#[derive(Clone, Debug)]
struct State<B: Backend> {
    values: FloatTensor<B>,
    columns: IntTensor<B>,
    weight: FloatTensor<B>,
}

impl<B: Backend + MemberGradientOps> Backward<B, 2> for LinearGradient {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let [node_values, node_weight] = ops.parents;
        let State {
            values,
            columns,
            weight,
        } = ops.state;
        let width = weight.shape()[0];
        if let Some(node) = node_values {
            let gradient = B::linear_members_gradient(columns.clone(), weight, upstream.clone());
            grads.register::<B>(node.id, gradient);
        }
        if let Some(node) = node_weight {
            let gradient = B::linear_members_weight_gradient(values, columns, upstream, width);
            grads.register::<B>(node.id, gradient);
        }
    }
}

impl<B: Backend + MemberOps + MemberGradientOps, C: CheckpointStrategy> MemberOps
    for Autodiff<B, C>
{
    fn linear_members(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [values.node(), weight.node()];
        let state = State::<B> {
            values: values.into_primitive(),
            columns,
            weight: weight.into_primitive(),
        };
        let kept = state.clone();
        let output = B::linear_members(kept.values, kept.columns, kept.weight);
        let kind = LinearGradient
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        finish(kind, state, output)
    }
}
