//! Gradients of distances with respect to the values of both matrices.

use burn::backend::{
    Backend,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use crate::ops::{
    DistanceGradientOps, DistanceOps, DistanceSpec, NearestSpec, RadiusSpec, Transposed,
};

/// A matrix and its transposed pattern, with columns numbered as in [`Transposed`].
#[derive(Clone)]
struct Matrix<B: Backend> {
    indptr: IntTensor<B>,
    places: IntTensor<B>,
    values: FloatTensor<B>,
    transposed: [IntTensor<B>; 3],
}

#[derive(Clone)]
struct State<B: Backend> {
    x: Matrix<B>,
    y: Matrix<B>,
    distances: FloatTensor<B>,
    spec: DistanceSpec,
}

impl<B: Backend> std::fmt::Debug for State<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("spec", &self.spec).finish()
    }
}

/// Gradient with respect to the values of `x`.
fn gradient<B: DistanceGradientOps>(
    x: Matrix<B>,
    y: Matrix<B>,
    upstream: FloatTensor<B>,
    distances: FloatTensor<B>,
    spec: DistanceSpec,
) -> FloatTensor<B> {
    let [indptr, rows, entries] = y.transposed;
    B::pairwise_gradient(
        x.indptr, x.places, x.values, y.indptr, y.places, y.values, indptr, rows, entries,
        upstream, distances, spec,
    )
}

#[derive(Debug)]
struct PairwiseGradient;

impl<B: Backend + DistanceGradientOps> Backward<B, 2> for PairwiseGradient {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let State {
            x,
            y,
            distances,
            spec,
        } = ops.state;
        let [node_x, node_y] = ops.parents;
        let upstream = grads.consume::<B>(&ops.node);
        if let Some(node) = node_x {
            let (x, y) = (x.clone(), y.clone());
            let grad = gradient::<B>(x, y, upstream.clone(), distances.clone(), spec);
            grads.register::<B>(node.id, grad);
        }
        if let Some(node) = node_y {
            // Every distance with a gradient is symmetric.
            let upstream = B::float_swap_dims(upstream, 0, 1);
            let distances = B::float_swap_dims(distances, 0, 1);
            let grad = gradient::<B>(y, x, upstream, distances, spec);
            grads.register::<B>(node.id, grad);
        }
    }
}

impl<B: Backend + DistanceOps + DistanceGradientOps, C: CheckpointStrategy> DistanceOps
    for Autodiff<B, C>
{
    fn pairwise(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let nodes = [x_values.node(), y_values.node()];
        let (x, y) = (x_values.into_primitive(), y_values.into_primitive());
        let distances = B::pairwise(
            x_indptr.clone(),
            x_indices,
            x.clone(),
            y_indptr.clone(),
            y_indices,
            y.clone(),
            Transposed::Without,
            spec,
        );
        let prepared = PairwiseGradient.prepare::<C>(nodes).compute_bound();
        match prepared.stateful() {
            OpsKind::UnTracked(prep) => prep.finish(distances),
            OpsKind::Tracked(prep) => {
                let Transposed::Both {
                    x_places,
                    y_places,
                    x_indptr: x_columns,
                    x_rows,
                    x_entries,
                    y_indptr: y_columns,
                    y_rows,
                    y_entries,
                } = transposed
                else {
                    panic!(
                        "pairwise_distances: this distance has no gradient; detach the values \
                         or take dot, euclidean, sqeuclidean, cosine or manhattan"
                    );
                };
                let state = State {
                    x: Matrix {
                        indptr: x_indptr,
                        places: x_places,
                        values: x,
                        transposed: [x_columns, x_rows, x_entries],
                    },
                    y: Matrix {
                        indptr: y_indptr,
                        places: y_places,
                        values: y,
                        transposed: [y_columns, y_rows, y_entries],
                    },
                    distances: distances.clone(),
                    spec,
                };
                prep.finish(state, distances)
            }
        }
    }

    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::FloatTensorPrimitive::new(B::greatest(values.into_primitive()))
    }

    fn nearest(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (x, y) = (x_values.into_primitive(), y_values.into_primitive());
        let (values, indices) = B::nearest(x_indptr, x_indices, x, y_indptr, y_indices, y, spec);
        (Self::FloatTensorPrimitive::new(values), indices)
    }

    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self> {
        B::count_within(distances.into_primitive(), spec)
    }

    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (values, places) = B::list_within(distances.into_primitive(), offsets, spec);
        (Self::FloatTensorPrimitive::new(values), places)
    }
}
