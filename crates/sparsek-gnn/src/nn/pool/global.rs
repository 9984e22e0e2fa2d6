use burn::tensor::Tensor;

use crate::graph::GraphBatch;

/// PyG's `global_add_pool`: sums each graph's rows in node order.
///
/// [nodes, width] → [graphs, width], 0 without nodes.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::global_sum_pool};
///
/// let [two, one] = [2, 1].map(|nodes| Graph::from_edges(nodes, []).unwrap());
/// let batch = GraphBatch::new(&[&two, &one]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
/// let y = global_sum_pool(&batch, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [3.0, 4.0]);
/// # }
/// ```
#[doc(alias = "global_add_pool")]
pub fn global_sum_pool(batch: &GraphBatch, x: Tensor<2>) -> Tensor<2> {
    batch.readout(&x.device()).scatter_sum(x)
}

/// PyG's `global_mean_pool`: [`global_sum_pool`] / nodes.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::global_mean_pool};
///
/// let [two, none] = [2, 0].map(|nodes| Graph::from_edges(nodes, []).unwrap());
/// let batch = GraphBatch::new(&[&two, &none]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0], [2.0]], &Device::flex());
/// let y = global_mean_pool(&batch, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [1.5, 0.0]);
/// # }
/// ```
pub fn global_mean_pool(batch: &GraphBatch, x: Tensor<2>) -> Tensor<2> {
    batch.readout(&x.device()).scatter_mean(x)
}

/// PyG's `global_max_pool`, as [`global_sum_pool`]. NaN is unspecified.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::global_max_pool};
///
/// let [two, one] = [2, 1].map(|nodes| Graph::from_edges(nodes, []).unwrap());
/// let batch = GraphBatch::new(&[&two, &one]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0, 0.0], [2.0, -3.0], [-4.0, 5.0]], &Device::flex());
/// let y = global_max_pool(&batch, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [2.0, 0.0, -4.0, 5.0]);
/// # }
/// ```
pub fn global_max_pool(batch: &GraphBatch, x: Tensor<2>) -> Tensor<2> {
    batch.readout(&x.device()).scatter_max(x)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use rstest::rstest;

    use super::*;
    use crate::{fixtures::device, graph::Graph};

    type Pool = fn(&GraphBatch, Tensor<2>) -> Tensor<2>;

    fn batch(sizes: &[usize]) -> GraphBatch {
        let graphs: Vec<Graph> =
            sizes.iter().map(|&nodes| Graph::from_edges(nodes, []).unwrap()).collect();
        GraphBatch::new(&graphs.iter().collect::<Vec<_>>()).unwrap()
    }

    #[rstest]
    #[case::sum(global_sum_pool, [0.0, -2.0, 0.0, 7.0], [1.0, 1.0, 4.0])]
    #[case::mean(global_mean_pool, [0.0, -1.0, 0.0, 7.0], [0.5, 0.5, 4.0])]
    #[case::max(global_max_pool, [0.0, -1.0, 0.0, 7.0], [1.0, 0.0, 4.0])]
    fn graphs_without_nodes_are_zero_and_ties_go_to_the_first(
        #[case] pool: Pool,
        #[case] expected: [f32; 4],
        #[case] slopes: [f32; 3],
        device: Device,
    ) {
        let device = device.autodiff();
        let x = Tensor::<2>::from_floats([[-1.0], [-1.0], [7.0]], &device).require_grad();
        let y = pool(&batch(&[0, 2, 0, 1]), x.clone());
        y.clone().into_data().assert_eq(&TensorData::from(expected.map(|y| [y])), false);
        let factors = Tensor::<2>::from_floats([[9.0], [1.0], [9.0], [4.0]], &device);
        let gradient = x.grad(&(y * factors).sum().backward()).unwrap();
        gradient.into_data().assert_eq(&TensorData::from(slopes.map(|slope| [slope])), false);
    }

    #[rstest]
    #[case(global_sum_pool)]
    #[case(global_mean_pool)]
    #[case(global_max_pool)]
    fn nothing_pools_to_zeros(#[case] pool: Pool, device: Device) {
        let x = Tensor::<2>::zeros([0, 3], &device);
        let y = pool(&batch(&[0, 0]), x);
        y.into_data().assert_eq(&TensorData::from([[0.0f32; 3]; 2]), false);
    }

    #[rstest]
    #[should_panic(expected = "messages: 2, but the pattern needs 3")]
    fn other_sizes_are_refused(device: Device) {
        global_sum_pool(&batch(&[3]), Tensor::zeros([2, 1], &device));
    }
}
