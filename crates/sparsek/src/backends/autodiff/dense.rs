use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Slice,
};
use burn_autodiff::{
    Autodiff,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops},
};

use super::tracking::finish;
use crate::ops::{DenseGradientOps, DenseOps};

/// Parents: rows, weight, optional bias and addend.
#[derive(Debug)]
struct LinearGradient;

impl<B: Backend + DenseOps + DenseGradientOps, const N: usize> Backward<B, N> for LinearGradient {
    type State = [FloatTensor<B>; 2];

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let [x, weight] = ops.state;
        let mut parents = ops.parents.into_iter();
        if let Some(node) = parents.next().flatten() {
            let gradient = B::linear_rows_backward(weight, upstream.clone());
            grads.register::<B>(node.id, gradient);
        }
        if let Some(node) = parents.next().flatten() {
            grads.register::<B>(node.id, B::linear_rows_gradient(x, upstream.clone()));
        }
        if let Some(node) = parents.next().flatten() {
            grads.register::<B>(node.id, B::column_sums(upstream.clone()));
        }
        if let Some(node) = parents.next().flatten() {
            grads.register::<B>(node.id, upstream);
        }
    }
}

#[derive(Debug)]
struct BiasGradient;

impl<B: Backend + DenseOps> Backward<B, 2> for BiasGradient {
    type State = ();

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let [node_x, node_bias] = ops.parents;
        if let Some(node) = node_bias {
            grads.register::<B>(node.id, B::column_sums(upstream.clone()));
        }
        if let Some(node) = node_x {
            grads.register::<B>(node.id, upstream);
        }
    }
}

#[derive(Debug)]
struct CompressedLinearGradient;

#[derive(Clone, Debug)]
struct CompressedState<B: Backend> {
    values: FloatTensor<B>,
    columns: IntTensor<B>,
    weight: FloatTensor<B>,
}

impl<B: Backend + DenseGradientOps> Backward<B, 2> for CompressedLinearGradient {
    type State = CompressedState<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let [node_values, node_weight] = ops.parents;
        let CompressedState { values, columns, weight } = ops.state;
        let width = weight.shape()[0];
        if let Some(node) = node_values {
            let gradient = B::linear_compressed_gradient(columns.clone(), weight, upstream.clone());
            grads.register::<B>(node.id, gradient);
        }
        if let Some(node) = node_weight {
            let gradient = B::linear_compressed_weight_gradient(values, columns, upstream, width);
            grads.register::<B>(node.id, gradient);
        }
    }
}

#[derive(Debug)]
struct SelectedGradient;

#[derive(Clone, Debug)]
struct SelectedState<B: Backend> {
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    columns: IntTensor<B>,
}

impl<B: Backend + DenseOps + DenseGradientOps> Backward<B, 2> for SelectedGradient {
    type State = SelectedState<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let [node_x, node_weight] = ops.parents;
        let SelectedState { x, weight, columns } = ops.state;
        let width = weight.shape()[0];
        if let Some(node) = node_x {
            let gradient = B::linear_compressed(upstream.clone(), columns.clone(), weight);
            grads.register::<B>(node.id, gradient);
        }
        if let Some(node) = node_weight {
            let gradient = B::linear_compressed_weight_gradient(upstream, columns, x, width);
            grads.register::<B>(node.id, gradient);
        }
    }
}

#[derive(Debug)]
struct LayerNormGradient;

impl<B: Backend + DenseGradientOps> Backward<B, 3> for LayerNormGradient {
    type State = (FloatTensor<B>, FloatTensor<B>, f32);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let (x, gamma, epsilon) = ops.state;
        let (dx, parameters) = B::layer_norm_rows_gradient(x, gamma, upstream, epsilon);
        let [node_x, node_gamma, node_beta] = ops.parents;
        if let Some(node) = node_x {
            grads.register::<B>(node.id, dx);
        }
        for (row, node) in [node_gamma, node_beta].into_iter().enumerate() {
            let Some(node) = node else { continue };
            let row = B::float_slice(parameters.clone(), &[Slice::from(row..row + 1)]);
            let width = row.shape()[1];
            grads.register::<B>(node.id, B::float_reshape(row, [width].into()));
        }
    }
}

#[derive(Debug)]
struct ColumnSumsGradient;

impl<B: Backend> Backward<B, 1> for ColumnSumsGradient {
    type State = [usize; 2];

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let ([rows, width], [node]) = (ops.state, ops.parents);
        if let Some(node) = node {
            let row = B::float_reshape(upstream, [1, width].into());
            grads.register::<B>(node.id, B::float_expand(row, [rows, width].into()));
        }
    }
}

#[derive(Debug)]
struct CrossEntropyGradient;

impl<B: Backend + DenseGradientOps> Backward<B, 1> for CrossEntropyGradient {
    type State = (FloatTensor<B>, IntTensor<B>, f32);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let ((scores, labels, scale), [node]) = (ops.state, ops.parents);
        if let Some(node) = node {
            let gradient = B::cross_entropy_gradient(scores, labels, upstream, scale);
            grads.register::<B>(node.id, gradient);
        }
    }
}

#[derive(Debug)]
struct DropoutGradient;

impl<B: Backend + DenseOps> Backward<B, 1> for DropoutGradient {
    type State = (IntTensor<B>, f32, u32);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<B>(&ops.node);
        let ((words, keep, call), [node]) = (ops.state, ops.parents);
        if let Some(node) = node {
            grads.register::<B>(node.id, B::dropout(upstream, words, keep, call));
        }
    }
}

impl<B: Backend + DenseOps + DenseGradientOps, C: CheckpointStrategy> DenseOps for Autodiff<B, C> {
    fn linear_rows(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let [x, weight] = [x, weight].map(|tensor| tensor.into_primitive());
        let output = B::linear_rows(x.clone(), weight.clone());
        let kind = LinearGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, [x, weight], output)
    }

    fn linear_rows_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let output = B::linear_rows_biased(x.clone(), weight.clone(), bias);
        let kind = LinearGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, [x, weight], output)
    }

    fn linear_rows_added(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        addend: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node(), addend.node()];
        let [x, weight, bias, addend] =
            [x, weight, bias, addend].map(|tensor| tensor.into_primitive());
        let output = B::linear_rows_added(x.clone(), weight.clone(), bias, addend);
        let kind = LinearGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, [x, weight], output)
    }

    fn add_bias_rows(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), bias.node()];
        let output = B::add_bias_rows(x.into_primitive(), bias.into_primitive());
        finish(BiasGradient.prepare::<C>(nodes).compute_bound().stateful(), (), output)
    }

    fn row_products(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [x, y, bias] = [x, y, bias].map(|tensor| tensor.into_primitive());
        Self::FloatTensorPrimitive::new(B::row_products(x, y, bias))
    }

    fn layer_norm_rows(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), gamma.node(), beta.node()];
        let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.into_primitive());
        let output = B::layer_norm_rows(x.clone(), gamma.clone(), beta, epsilon);
        let kind = LayerNormGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, (x, gamma, epsilon), output)
    }

    fn linear_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [values.node(), weight.node()];
        let state = CompressedState::<B> {
            values: values.into_primitive(),
            columns,
            weight: weight.into_primitive(),
        };
        let kept = state.clone();
        let output = B::linear_compressed(kept.values, kept.columns, kept.weight);
        let kind = CompressedLinearGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, state, output)
    }

    fn linear_selected(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        columns: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let [x, weight] = [x, weight].map(|tensor| tensor.into_primitive());
        let output = B::linear_selected(x.clone(), weight.clone(), columns.clone());
        let kind = SelectedGradient.prepare::<C>(nodes).compute_bound().stateful();
        finish(kind, SelectedState::<B> { x, weight, columns }, output)
    }

    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let node = x.node();
        let x = x.into_primitive();
        let shape = x.shape().dims();
        let kind = ColumnSumsGradient.prepare::<C>([node]).compute_bound().stateful();
        finish(kind, shape, B::column_sums(x))
    }

    fn cross_entropy(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self> {
        let node = scores.node();
        let scores = scores.into_primitive();
        let output = B::cross_entropy(scores.clone(), labels.clone(), scale);
        let kind = CrossEntropyGradient.prepare::<C>([node]).compute_bound().stateful();
        finish(kind, (scores, labels, scale), output)
    }

    fn dropout(
        x: FloatTensor<Self>,
        words: IntTensor<Self>,
        keep: f32,
        call: u32,
    ) -> FloatTensor<Self> {
        let node = x.node();
        let output = B::dropout(x.into_primitive(), words.clone(), keep, call);
        let kind = DropoutGradient.prepare::<C>([node]).compute_bound().stateful();
        finish(kind, (words, keep, call), output)
    }
}
