use burn::backend::{Backend, tensor::FloatTensor};
use burn_autodiff::{
    Autodiff,
    checkpoint::strategy::CheckpointStrategy,
    ops::{Backward, OpsKind},
};

pub(super) fn finish<G, B, C, const N: usize>(
    kind: OpsKind<G, B, G::State, C, N>,
    state: G::State,
    output: FloatTensor<B>,
) -> FloatTensor<Autodiff<B, C>>
where
    G: Backward<B, N>,
    B: Backend,
    C: CheckpointStrategy,
{
    match kind {
        OpsKind::Tracked(prep) => prep.finish(state, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
