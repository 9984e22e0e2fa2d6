//! Gradients of sparse products: by the transposed pattern, at the places of the members where rows are compressed.

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

use super::finish;
use crate::ops::{
    AggregateGradientOps, AggregateOps, CompressedSpec, Factor, Factors, Operator, Stretched,
};

/// The columns of the right-hand matrix of a product, where it is compressed.
type Columns<B> = Option<(IntTensor<B>, CompressedSpec)>;

/// What the gradient of a product needs.
#[derive(Clone)]
struct State<B: Backend> {
    operator: Operator<B>,
    factors: Factors<B>,
    columns: Columns<B>,
    /// The right-hand matrix, or the values of its members, where there are weights.
    values: Option<FloatTensor<B>>,
}

impl<B: Backend> std::fmt::Debug for State<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

impl<B: Backend + AggregateGradientOps> State<B> {
    /// With respect to the right-hand matrix, or to the values of its members.
    fn right(self, upstream: FloatTensor<B>) -> FloatTensor<B> {
        match self.columns {
            None => B::spmm_turned(upstream, self.factors.turned(), self.operator.turned()),
            Some((columns, spec)) => {
                B::compressed_gradient(upstream, columns, self.factors, self.operator, spec)
            }
        }
    }

    /// With respect to the weights.
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

/// Of a product without weights.
#[derive(Debug)]
struct ProductGradient;

impl<B: Backend + AggregateGradientOps> Backward<B, 1> for ProductGradient {
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

/// Of a product with weights.
#[derive(Debug)]
struct WeightedGradient;

impl<B: Backend + AggregateGradientOps> Backward<B, 2> for WeightedGradient {
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

impl<B: Backend + AggregateGradientOps> Backward<B, 1> for ExpandGradient {
    type State = IntTensor<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::pick(grad, ops.state)
        });
    }
}

/// The operator on the backend beneath: integers have no gradient.
fn inner<B: Backend, C: CheckpointStrategy>(operator: Operator<Autodiff<B, C>>) -> Operator<B> {
    Operator {
        indptr: operator.indptr,
        indices: operator.indices,
        parts: operator.parts,
        turned_indptr: operator.turned_indptr,
        turned_indices: operator.turned_indices,
        turned_entries: operator.turned_entries,
        turned_parts: operator.turned_parts,
        turned_stretches: match operator.turned_stretches {
            Stretched::No => Stretched::No,
            Stretched::By(tensor) => Stretched::By(tensor),
        },
    }
}

fn constant<B: Backend, C: CheckpointStrategy>(factor: Factor<Autodiff<B, C>>) -> Factor<B> {
    match factor {
        Factor::One => Factor::One,
        Factor::Each(tensor) => Factor::Each(tensor.into_primitive()),
    }
}

/// A product with `values`, dense or of members, tracked with respect to these and to the weights, if it has some.
fn product<B: Backend + AggregateGradientOps, C: CheckpointStrategy>(
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
        factors: Factors {
            weights: constant(factors.weights),
            rows: constant(factors.rows),
            cols: constant(factors.cols),
        },
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

impl<B: Backend + AggregateOps + AggregateGradientOps, C: CheckpointStrategy> AggregateOps
    for Autodiff<B, C>
{
    fn partition(indptr: IntTensor<Self>, nnz: usize) -> IntTensor<Self> {
        B::partition(indptr, nnz)
    }

    fn most_columns(like: IntTensor<Self>) -> IntTensor<Self> {
        B::most_columns(like)
    }

    fn stretches(
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
        most: usize,
    ) -> IntTensor<Self> {
        B::stretches(indptr, indices, cols, most)
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
        product(
            values,
            kept,
            factors,
            operator,
            |values, factors, operator| {
                B::spmm_compressed(values, columns, factors, operator, spec)
            },
        )
    }

    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        let node = values.node();
        let output = B::expand(values.into_primitive(), columns.clone(), width);
        let kind = ExpandGradient
            .prepare::<C>([node])
            .compute_bound()
            .stateful();
        finish(kind, columns, output)
    }
}
