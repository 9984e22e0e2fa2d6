use burn::backend::{
    Backend,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, unary},
};

use super::tracking::finish;
use crate::ops::{
    BlockedEntries, CompressedSpec, Factor, Factors, Operator, SpmmGradientOps, SpmmOps,
};

type Columns<B> = Option<(IntTensor<B>, CompressedSpec)>;

#[derive(Clone)]
struct State<B: Backend> {
    operator: Operator<B>,
    factors: Factors<B>,
    columns: Columns<B>,
    values: Option<FloatTensor<B>>,
}

impl<B: Backend> std::fmt::Debug for State<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

impl<B: Backend + SpmmOps + SpmmGradientOps> State<B> {
    fn right(self, upstream: FloatTensor<B>) -> FloatTensor<B> {
        match self.columns {
            None => {
                B::spmm_transposed(upstream, self.factors.transposed(), self.operator.transposed())
            }
            Some((columns, spec)) => {
                B::compressed_gradient(upstream, columns, self.factors, self.operator, spec)
            }
        }
    }

    fn weights(self, upstream: FloatTensor<B>) -> FloatTensor<B> {
        let values = self.values.expect("kept where there are weights");
        match self.columns {
            None => B::sddmm(upstream, values, self.factors, self.operator),
            Some((columns, _)) => {
                B::sddmm_compressed(upstream, values, columns, self.factors, self.operator)
            }
        }
    }
}

#[derive(Debug)]
struct ProductGradient;

impl<B: Backend + SpmmOps + SpmmGradientOps> Backward<B, 1> for ProductGradient {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        unary::<B, _>(ops.parents, ops.node, grads, |grad| ops.state.right(grad));
    }
}

#[derive(Debug)]
struct WeightedGradient;

impl<B: Backend + SpmmOps + SpmmGradientOps> Backward<B, 2> for WeightedGradient {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let [node_right, node_weights] = ops.parents;
        let upstream = grads.consume::<B>(&ops.node);
        let state = ops.state;
        if let Some(node) = node_right {
            grads.register::<B>(node.id, state.clone().right(upstream.clone()));
        }
        if let Some(node) = node_weights {
            grads.register::<B>(node.id, state.weights(upstream));
        }
    }
}

#[derive(Debug)]
struct ExpandGradient;

impl<B: Backend + SpmmGradientOps> Backward<B, 1> for ExpandGradient {
    type State = IntTensor<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        unary::<B, _>(ops.parents, ops.node, grads, |grad| B::gather_columns(grad, ops.state));
    }
}

#[derive(Debug)]
struct MaximumGradient;

impl<B: Backend + SpmmGradientOps> Backward<B, 1> for MaximumGradient {
    type State = (IntTensor<B>, Operator<B>);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (winners, operator) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::spmm_max_gradient(grad, winners, operator)
        });
    }
}

#[derive(Clone)]
struct Sampled<B: Backend> {
    left: FloatTensor<B>,
    right: FloatTensor<B>,
    factors: Factors<B>,
    operator: Operator<B>,
}

impl<B: Backend> std::fmt::Debug for Sampled<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampled")
    }
}

#[derive(Debug)]
struct SampledGradient;

impl<B: Backend + SpmmOps + SpmmGradientOps> Backward<B, 2> for SampledGradient {
    type State = Sampled<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let [node_left, node_right] = ops.parents;
        let weights = Factor::Each(grads.consume::<B>(&ops.node));
        let Sampled { left, right, factors, operator } = ops.state;
        let factors = Factors { weights, ..factors };
        if let Some(node) = node_left {
            let gradient = B::spmm(right, factors.clone(), operator.clone());
            grads.register::<B>(node.id, gradient);
        }
        if let Some(node) = node_right {
            let gradient = B::spmm_transposed(left, factors.transposed(), operator.transposed());
            grads.register::<B>(node.id, gradient);
        }
    }
}

fn inner<B: Backend, C: CheckpointStrategy>(operator: Operator<Autodiff<B, C>>) -> Operator<B> {
    Operator {
        indptr: operator.indptr,
        indices: operator.indices,
        parts: operator.parts,
        transposed_indptr: operator.transposed_indptr,
        transposed_indices: operator.transposed_indices,
        transposed_entries: operator.transposed_entries,
        transposed_parts: operator.transposed_parts,
        transposed_blocks: match operator.transposed_blocks {
            BlockedEntries::Absent => BlockedEntries::Absent,
            BlockedEntries::Present(tensor) => BlockedEntries::Present(tensor),
        },
    }
}

fn constant<B: Backend, C: CheckpointStrategy>(factor: Factor<Autodiff<B, C>>) -> Factor<B> {
    match factor {
        Factor::One => Factor::One,
        Factor::Each(tensor) => Factor::Each(tensor.into_primitive()),
    }
}

fn constants<B: Backend, C: CheckpointStrategy>(factors: Factors<Autodiff<B, C>>) -> Factors<B> {
    Factors {
        weights: constant(factors.weights),
        rows: constant(factors.rows),
        cols: constant(factors.cols),
    }
}

fn product<B: Backend + SpmmOps + SpmmGradientOps, C: CheckpointStrategy>(
    values: FloatTensor<Autodiff<B, C>>,
    columns: Columns<B>,
    factors: Factors<Autodiff<B, C>>,
    operator: Operator<Autodiff<B, C>>,
    forward: impl FnOnce(FloatTensor<B>, Factors<B>, Operator<B>) -> FloatTensor<B>,
) -> FloatTensor<Autodiff<B, C>> {
    let node = values.node();
    let node_weights = match &factors.weights {
        Factor::One => None,
        Factor::Each(weights) => Some(weights.node()),
    };
    let values = values.into_primitive();
    let state = State {
        operator: inner(operator),
        factors: constants(factors),
        columns,
        values: node_weights.is_some().then(|| values.clone()),
    };
    let output = forward(values, state.factors.clone(), state.operator.clone());
    match node_weights {
        None => {
            let prepared = ProductGradient.prepare::<C>([node]);
            finish(prepared.compute_bound().stateful(), state, output)
        }
        Some(weights) => {
            let prepared = WeightedGradient.prepare::<C>([node, weights]);
            finish(prepared.compute_bound().stateful(), state, output)
        }
    }
}

impl<B: Backend + SpmmOps + SpmmGradientOps, C: CheckpointStrategy> SpmmOps for Autodiff<B, C> {
    fn partition(indptr: IntTensor<Self>, nnz: usize) -> IntTensor<Self> {
        B::partition(indptr, nnz)
    }

    fn block_columns(like: IntTensor<Self>) -> IntTensor<Self> {
        B::block_columns(like)
    }

    fn column_blocks(
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
        most: usize,
    ) -> IntTensor<Self> {
        B::column_blocks(indptr, indices, cols, most)
    }

    fn spmm(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        product(x, None, factors, operator, B::spmm)
    }

    fn spmm_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self> {
        let kept = Some((columns.clone(), spec));
        product(values, kept, factors, operator, |values, factors, operator| {
            B::spmm_compressed(values, columns, factors, operator, spec)
        })
    }

    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        let node = values.node();
        let output = B::expand(values.into_primitive(), columns.clone(), width);
        let kind = ExpandGradient.prepare::<C>([node]).compute_bound().stateful();
        finish(kind, columns, output)
    }

    fn spmm_max(x: FloatTensor<Self>, operator: Operator<Self>) -> FloatTensor<Self> {
        let node = x.node();
        let operator = inner(operator);
        let (y, winners) = B::spmm_max_winners(x.into_primitive(), operator.clone());
        let kind = MaximumGradient.prepare::<C>([node]).compute_bound().stateful();
        finish(kind, (winners, operator), y)
    }

    fn sddmm(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [left.node(), right.node()];
        let state = Sampled {
            left: left.into_primitive(),
            right: right.into_primitive(),
            factors: constants(factors),
            operator: inner(operator),
        };
        let Sampled { left, right, factors, operator } = state.clone();
        let output = B::sddmm(left, right, factors, operator);
        finish(SampledGradient.prepare::<C>(nodes).compute_bound().stateful(), state, output)
    }
}
