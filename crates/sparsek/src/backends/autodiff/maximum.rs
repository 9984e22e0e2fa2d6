//! The gradient of the maximum goes to the elements that won.

use burn::backend::{
    Backend,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind, unary},
};

use crate::ops::{MaximumGradientOps, MaximumOps};

#[derive(Debug)]
struct MaximumGradient;

impl<B: Backend + MaximumGradientOps> Backward<B, 1> for MaximumGradient {
    /// The winners, and the transposed pattern with its entries.
    type State = (IntTensor<B>, [IntTensor<B>; 3]);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (winners, [indptr, indices, entries]) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::spmm_max_gradient(grad, winners, indptr, indices, entries)
        });
    }
}

impl<B: Backend + MaximumOps + MaximumGradientOps, C: CheckpointStrategy> MaximumOps
    for Autodiff<B, C>
{
    fn spmm_max(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let node = x.node();
        let (y, winners) = B::spmm_max_winners(x.into_primitive(), indptr, indices);
        match MaximumGradient
            .prepare::<C>([node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let transposed = [transposed_indptr, transposed_indices, transposed_entries];
                prep.finish((winners, transposed), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}
