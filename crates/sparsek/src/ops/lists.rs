//! Selections whose members come to the host, which is what brings those of several devices together.

use std::sync::mpsc::Sender;

use burn::{
    backend::{
        Backend, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::TensorData,
};
#[cfg(feature = "cubecl")]
use cubecl::{client::Client, server::Handle};

use super::TopkSpec;
#[cfg(feature = "fusion")]
use super::{LengthsMetadata, shapes};

/// The members of a vector and their positions in it, of the dtypes asked, where a device has put them.
pub enum Members {
    /// In memory of a device, once it has done what it was asked for.
    #[cfg(feature = "cubecl")]
    Device {
        /// The device's.
        client: Client,
        /// Members.
        values: Handle,
        /// Their positions.
        positions: Handle,
    },
    /// In the host's memory.
    Host {
        /// Members.
        values: TensorData,
        /// Their positions.
        positions: TensorData,
    },
}

/// What became of a selection: its members, or why there are none.
pub type Outcome = Result<Members, String>;

/// Selections from vectors and from the lists that these leave on the host.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait ListOps: Backend {
    /// Launches a selection and sends where its members will be. Returns the vector, as operations return tensors.
    #[fusion(dtype = input, shape = input)]
    fn list_float(
        input: FloatTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> FloatTensor<Self>;

    /// [`list_float`](Self::list_float) of integers.
    #[fusion(dtype = input, shape = input)]
    fn list_int(input: IntTensor<Self>, spec: TopkSpec, to: Sender<Outcome>) -> IntTensor<Self>;

    /// Members, and what stands at their positions among `places`, which are of the indices' dtype.
    #[fusion(meta = |input, _, spec| shapes::members(input, &LengthsMetadata::Whole, spec))]
    fn placed_float(
        input: FloatTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// [`placed_float`](Self::placed_float) of integers.
    #[fusion(meta = |input, _, spec| shapes::members(input, &LengthsMetadata::Whole, spec))]
    fn placed_int(
        input: IntTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}
