//! A dataset as tensors: features, targets and what turns scores into accuracies.
use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::TrainError;
use crate::datasets::NodeDataset;

/// Constants on a device, outside autodiff.
pub(super) struct DeviceData {
    pub(super) features: Tensor<2>,
    /// [nodes, classes]: −1 / training nodes at the class of each training node.
    targets: Tensor<2>,
    /// [nodes, 1].
    labels: Tensor<2, Int>,
    /// [nodes, 3]: 1 at the nodes of the training, validation and test splits.
    members: Tensor<2>,
}

impl DeviceData {
    pub(super) fn new(data: &NodeDataset, device: &Device) -> Result<Self, TrainError> {
        let (nodes, classes) = (data.nodes(), data.classes());
        let device = &device.clone().without_autodiff();
        let splits = [
            ("training", data.train()),
            ("validation", data.val()),
            ("test", data.test()),
        ];
        let mut members = vec![0f32; nodes * 3];
        for (column, (split, list)) in splits.into_iter().enumerate() {
            if list.is_empty() {
                return Err(TrainError::EmptySplit {
                    split,
                    dataset: data.name().to_string(),
                });
            }
            for &node in list {
                members[node as usize * 3 + column] = 1.0;
            }
        }
        let mut targets = vec![0f32; nodes * classes];
        for &node in data.train() {
            targets[node as usize * classes + data.labels()[node as usize] as usize] =
                -1.0 / data.train().len() as f32;
        }
        let labels: Vec<i32> = data.labels().iter().map(|&label| label as i32).collect();
        Ok(Self {
            features: Tensor::from_data(
                TensorData::new(data.features().to_vec(), [nodes, data.feature_width()]),
                device,
            ),
            targets: Tensor::from_data(TensorData::new(targets, [nodes, classes]), device),
            labels: Tensor::from_data(TensorData::new(labels, [nodes, 1]), device),
            members: Tensor::from_data(TensorData::new(members, [nodes, 3]), device),
        })
    }

    /// Mean cross-entropy of the training nodes, [1]. A product with constants, so that its gradient scatters nothing.
    pub(super) fn loss(&self, logits: Tensor<2>) -> Tensor<1> {
        (log_softmax(logits, 1) * self.targets.clone()).sum()
    }

    /// Right answers among the training, validation and test nodes, [3]; exact below 2^24 nodes.
    pub(super) fn right(&self, logits: Tensor<2>) -> Tensor<1> {
        let right = logits.argmax(1).equal(self.labels.clone()).float();
        (self.members.clone() * right).sum_dim(0).reshape([3])
    }
}
