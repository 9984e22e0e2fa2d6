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

use sparsek_kernels::distance::{DenseForm, Gradient, divisor};

use crate::ops::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, GradientSpec, ListedSpec,
    NearestSpec, RadiusSpec, Transposed, TransposedPattern,
};

#[derive(Clone)]
struct Matrix<B: Backend> {
    csr: CsrTensors<B>,
    transposed: TransposedPattern<B>,
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

fn gradient<B: DistanceGradientOps>(
    x: Matrix<B>,
    y: Matrix<B>,
    [upstream, distances, divisors]: [FloatTensor<B>; 3],
    spec: GradientSpec,
) -> FloatTensor<B> {
    B::pairwise_gradient(x.csr, y.csr, y.transposed, upstream, distances, divisors, spec)
}

/// Returns the distances if nothing divides.
fn divisors<B: DistanceOps>(state: &State<B>, slope: Gradient) -> FloatTensor<B> {
    let Some(distance) = divisor(slope) else {
        return state.distances.clone();
    };
    // A row also needs a divisor with itself.
    let spec = DistanceSpec { distance, routine: None, same_matrix: false, ..state.spec };
    B::pairwise(state.x.csr.clone(), state.y.csr.clone(), Transposed::Without, spec)
}

fn inner<B: Backend, C: CheckpointStrategy>(csr: CsrTensors<Autodiff<B, C>>) -> CsrTensors<B> {
    CsrTensors { indptr: csr.indptr, indices: csr.indices, values: csr.values.into_primitive() }
}

fn inner_pattern<B: Backend, C: CheckpointStrategy>(
    pattern: TransposedPattern<Autodiff<B, C>>,
) -> TransposedPattern<B> {
    TransposedPattern { indptr: pattern.indptr, rows: pattern.rows, entries: pattern.entries }
}

#[derive(Debug)]
struct PairwiseGradient;

impl<B: Backend + DistanceOps + DistanceGradientOps> Backward<B, 2> for PairwiseGradient {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let slope = ops.state.spec.distance.algebra().gradient;
        let slope = slope.expect("only what has a gradient is tracked");
        let divisors = divisors(&ops.state, slope);
        let State { x, y, distances, spec } = ops.state;
        let [node_x, node_y] = ops.parents;
        let pairs = [grads.consume::<B>(&ops.node), distances, divisors];
        if let Some(node) = node_x {
            let spec = GradientSpec { by: spec, slope };
            let grad = gradient::<B>(x.clone(), y.clone(), pairs.clone(), spec);
            grads.register::<B>(node.id, grad);
        }
        if let Some(node) = node_y {
            let spec = GradientSpec { by: spec, slope: slope.of_second() };
            let pairs = pairs.map(|pairs| B::float_swap_dims(pairs, 0, 1));
            let grad = gradient::<B>(y, x, pairs, spec);
            grads.register::<B>(node.id, grad);
        }
    }
}

impl<B: Backend + DistanceOps + DistanceGradientOps, C: CheckpointStrategy> DistanceOps
    for Autodiff<B, C>
{
    fn pairwise(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let nodes = [x.values.node(), y.values.node()];
        let (x, y) = (inner(x), inner(y));
        let distances = B::pairwise(x.clone(), y.clone(), Transposed::Without, spec);
        let prepared = PairwiseGradient.prepare::<C>(nodes).compute_bound();
        match prepared.stateful() {
            OpsKind::UnTracked(prep) => prep.finish(distances),
            OpsKind::Tracked(prep) => {
                let Transposed::Both { x_columns, x: x_transposed, y_columns, y: y_transposed } =
                    transposed
                else {
                    panic!(
                        "pairwise_distances: this distance has no gradient; detach the values, \
                         or take a metric that its documentation lists under gradients"
                    );
                };
                let state = State {
                    x: Matrix {
                        csr: CsrTensors { indices: x_columns, ..x },
                        transposed: inner_pattern(x_transposed),
                    },
                    y: Matrix {
                        csr: CsrTensors { indices: y_columns, ..y },
                        transposed: inner_pattern(y_transposed),
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
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (values, indices) = B::nearest(inner(x), inner(y), spec);
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

    fn unit_rows(rows: FloatTensor<Self>, centered: bool) -> FloatTensor<Self> {
        Self::FloatTensorPrimitive::new(B::unit_rows(rows.into_primitive(), centered))
    }

    fn dense_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        let [queries, rows] = [queries, rows].map(|tensor| tensor.into_primitive());
        Self::FloatTensorPrimitive::new(B::dense_distances(queries, rows, form))
    }

    fn candidate_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        candidates: IntTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        let [queries, rows] = [queries, rows].map(|tensor| tensor.into_primitive());
        Self::FloatTensorPrimitive::new(B::candidate_distances(queries, rows, candidates, form))
    }

    fn near_distances(
        factors: FloatTensor<Self>,
        index: FloatTensor<Self>,
        offsets: FloatTensor<Self>,
        limits: FloatTensor<Self>,
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        spec: ListedSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let [factors, index, offsets, limits, queries, rows] =
            [factors, index, offsets, limits, queries, rows].map(|tensor| tensor.into_primitive());
        let (distances, numbers) =
            B::near_distances(factors, index, offsets, limits, queries, rows, spec);
        (Self::FloatTensorPrimitive::new(distances), numbers)
    }
}
