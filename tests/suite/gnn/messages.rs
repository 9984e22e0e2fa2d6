//! Message passing against plain loops, gradients against finite differences.

use burn::{
    nn::Relu,
    tensor::{Tensor, TensorData},
};
use sparsek::sparse::{MessagePassing, Pattern};
use sparsek_gnn::Graph;
use sparsek_tests::{
    backend::Backend,
    oracle::{
        layers::Matrix,
        messages::{self, Reduce},
    },
    panics::expect_panic,
    runner::Cases,
};

use super::subject::{Inputs, NODES, Subject, WIDTH, add_subject};

const HEADS: usize = 2;

type Forward = fn(&Relu, &Graph, Tensor<2>, Tensor<1>) -> Tensor<2>;
type Expected = fn(&Inputs) -> Matrix;

pub fn add(cases: &mut Cases, backend: &Backend) {
    let operations: [(&str, Forward, Expected); 9] = [
        (
            "gather",
            |_, graph, x, _| graph.messages(&x.device()).gather(x),
            |inputs| {
                let x = inputs.x();
                messages::messages(&inputs.edges(false), |source, _, _| x[source].clone())
            },
        ),
        (
            "gather-targets",
            |_, graph, x, _| graph.messages(&x.device()).gather_targets(x),
            |inputs| {
                let x = inputs.x();
                messages::messages(&inputs.edges(false), |_, target, _| x[target].clone())
            },
        ),
        (
            "scatter-sum",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                edges.scatter_sum(weighted(&edges, x, w))
            },
            |inputs| reduced(inputs, Reduce::Sum),
        ),
        (
            "scatter-mean",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                edges.scatter_mean(weighted(&edges, x, w))
            },
            |inputs| reduced(inputs, Reduce::Mean),
        ),
        (
            "scatter-max",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                edges.scatter_max(weighted(&edges, x, w))
            },
            |inputs| reduced(inputs, Reduce::Max),
        ),
        (
            "scatter-min",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                edges.scatter_min(weighted(&edges, x, w))
            },
            |inputs| reduced(inputs, Reduce::Min),
        ),
        (
            "edge-softmax",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                edges.edge_softmax(weighted(&edges, x, w))
            },
            |inputs| messages::softmax(&inputs.edges(false), &products(inputs)),
        ),
        (
            "sddmm",
            |_, graph, x, _| {
                let left = heads(x.clone().square());
                graph.messages(&x.device()).sddmm(left, heads(x))
            },
            |inputs| {
                let x = inputs.x();
                messages::messages(&inputs.edges(false), |source, target, _| {
                    let left: Vec<f64> = x[target].iter().map(|x| x * x).collect();
                    messages::head_dots(&left, &x[source], HEADS)
                })
            },
        ),
        (
            "propagate",
            |_, graph, x, w| {
                let edges = graph.messages(&x.device());
                let weights = weighted(&edges, x.clone().narrow(1, 0, HEADS), w);
                edges.propagate(weights, heads(x)).reshape([NODES, WIDTH])
            },
            |inputs| {
                let weights = products(inputs).iter().map(|row| row[..HEADS].to_vec()).collect();
                messages::attend(&inputs.edges(false), &weights, &inputs.x())
            },
        ),
    ];
    for (name, forward, expected) in operations {
        let subject = Subject { make: |_| Relu::new(), forward, expected };
        add_subject(cases, backend, &format!("messages/{name}"), subject);
    }
    cases.check_shared(backend, "tensor/gnn/messages/extremes", extremes);
    cases.check(backend, "tensor/gnn/messages/refusals", refusals);
}

fn heads(x: Tensor<2>) -> Tensor<3> {
    x.reshape([NODES, HEADS, WIDTH / HEADS])
}

fn weighted(edges: &MessagePassing, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
    edges.gather(x) * weights.unsqueeze_dim(1)
}

fn products(inputs: &Inputs) -> Matrix {
    let x = inputs.x();
    messages::messages(&inputs.edges(true), |source, _, weight| {
        x[source].iter().map(|x| weight * x).collect()
    })
}

fn reduced(inputs: &Inputs, how: Reduce) -> Matrix {
    messages::reduce(&inputs.edges(false), &products(inputs), how)
}

/// Four targets of three sources: an empty row, equal messages, scores beyond the range of exp.
fn edges(backend: &Backend) -> MessagePassing {
    let pattern = Pattern::new(4, 3, vec![0, 3, 3, 5, 6], vec![2, 0, 2, 1, 1, 0]);
    MessagePassing::new(&pattern.expect("a valid pattern"), &backend.device.clone().autodiff())
}

fn column(values: &[f32], backend: &Backend) -> Tensor<2> {
    let data = TensorData::new(values.to_vec(), [values.len(), 1]);
    Tensor::from_data(data, &backend.device.clone().autodiff()).require_grad()
}

/// Ties go to the first; softmax neither overflows nor shifts; its gradients sum to 0.
fn extremes(backend: &Backend) -> Result<(), String> {
    let edges = edges(backend);
    let elements = |tensor: Tensor<2>| -> Vec<f32> { tensor.into_data().iter::<f32>().collect() };
    let messages = column(&[2.0, 5.0, 5.0, -1.0, -1.0, 7.0], backend);
    for (what, y, expected, slopes) in [
        ("max", edges.scatter_max(messages.clone()), [5.0, 0.0, -1.0, 7.0], [0, 1, 0, 1, 0, 1]),
        ("min", edges.scatter_min(messages.clone()), [2.0, 0.0, -1.0, 7.0], [1, 0, 0, 1, 0, 1]),
    ] {
        let gradients = y.clone().sum().backward();
        let found = messages.grad(&gradients).map(elements).ok_or("no gradient")?;
        let slopes = slopes.map(|slope| slope as f32);
        if elements(y.clone()) != expected || found != slopes {
            return Err(format!("{what}: {y}, gradient {found:?}"));
        }
    }
    let scores = column(&[3e38, 3e38, -3e38, -500.0, -500.0, 1000.0], backend);
    let y = edges.edge_softmax(scores.clone());
    let gradients = (y.clone() * column(&[1.0, 3.0, 9.0, 2.0, 4.0, 5.0], backend)).sum().backward();
    let slopes = scores.grad(&gradients).map(elements).ok_or("no gradient")?;
    let expected = ([0.5, 0.5, 0.0, 0.5, 0.5, 1.0], [-0.5, 0.5, 0.0, -0.5, 0.5, 0.0]);
    match elements(y.clone()) == expected.0 && slopes == expected.1 {
        true => Ok(()),
        false => Err(format!("softmax: {y}, gradient {slopes:?}")),
    }
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let (edges, four) = (edges(backend), column(&[0.0; 4], backend));
    type Call<'a> = Box<dyn Fn() -> Tensor<2> + 'a>;
    let refused: [(&str, Call); 4] = [
        ("gather: x: 4, but the pattern needs 3", Box::new(|| edges.gather(four.clone()))),
        (
            "scatter_min: messages: 4, but the pattern needs 6",
            Box::new(|| edges.scatter_min(four.clone())),
        ),
        (
            "edge_softmax: messages: 4, but the pattern needs 6",
            Box::new(|| edges.edge_softmax(four.clone())),
        ),
        (
            "sddmm: left is 4 × 1, F32, but needs 4 × 2, F32",
            Box::new(|| {
                let right = Tensor::zeros([3, 1, 2], &four.device());
                edges.sddmm(four.clone().unsqueeze_dim(1), right)
            }),
        ),
    ];
    for (expected, call) in &refused {
        let found = expect_panic(|| _ = call())?;
        if !found.contains(expected) {
            return Err(format!("`{found}` instead of `{expected}`"));
        }
    }
    Ok(())
}
