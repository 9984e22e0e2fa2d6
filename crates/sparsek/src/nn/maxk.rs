use burn::{config::Config, module::Module, tensor::Tensor};

use crate::{
    sparse::{Compressed, sparse_topk},
    topk::{Method, TopkOptions, topk_mask},
};

/// Configures [`MaxK`].
#[derive(Config, Copy, Debug, PartialEq)]
pub struct MaxKConfig {
    /// Elements per row.
    pub k: usize,
    /// Selection method. Default: exact.
    #[config(default = "Method::Exact")]
    pub method: Method,
}

impl MaxKConfig {
    /// Makes the layer.
    pub fn init(&self) -> MaxK {
        MaxK { config: *self }
    }
}

/// Per row, `y[i] = x[i] if i ∈ topk(x) else 0`. Peng et al., 2024.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek::nn::MaxKConfig;
///
/// let x = Tensor::<2>::from_floats([[1.0, -3.0, 2.0], [-1.0, -2.0, -3.0]], &Device::flex());
/// let y = MaxKConfig::new(1).init().forward(x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 2.0, -1.0, 0.0, 0.0]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct MaxK {
    #[module(skip)]
    config: MaxKConfig,
}

impl MaxK {
    /// `[.., width]` → same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let options = TopkOptions::new(self.config.k).with_method(self.config.method);
        topk_mask(x, &options, -1)
    }

    /// `[rows, width]` → compressed `[rows, k]`.
    pub fn compress(&self, x: Tensor<2>) -> Compressed {
        sparse_topk(x, self.config.k, self.config.method)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{assert_close, check_gradient, device, probe, random, tensor};
    use burn::tensor::Device;

    #[rstest]
    fn keeps_the_greatest_and_passes_their_gradient(
        device: Device,
        #[values(0, 1, 3, 7)] k: usize,
    ) {
        let host = random(5 * 7, k as u64);
        let x = tensor(&host, [5, 7], &device);
        let layer = MaxKConfig::new(k).init();
        let mut expected = host.clone();
        for row in expected.chunks_mut(7) {
            let mut order = row.to_vec();
            order.sort_by(|a, b| b.total_cmp(a));
            for x in row {
                if !order[..k].contains(x) {
                    *x = 0.0;
                }
            }
        }
        assert_close(layer.forward(x.clone()), &expected);
        assert_close(layer.compress(x.clone()).to_dense(), &expected);
        check_gradient(x.clone(), |x| probe(layer.forward(x)));
        check_gradient(x, |x| probe(layer.compress(x).to_dense()));
    }

    #[test]
    fn the_configuration_is_read_as_it_is_written() {
        let config = MaxKConfig::new(3).with_method(Method::EarlyStop(4));
        let read = MaxKConfig::load_binary(&config.to_string().into_bytes()).unwrap();
        assert_eq!(read, config);
    }
}
