#[cfg(feature = "cubecl")]
use burn::{backend::DispatchDevice, tensor::Device};

mod autodiff;
#[cfg(feature = "cubecl")]
mod cube;
#[cfg(feature = "flex")]
mod flex;

#[cfg(feature = "cubecl")]
pub(crate) fn ask_client<T>(
    device: &Device,
    ask: impl FnOnce(&cubecl::client::Client) -> T,
) -> Option<T> {
    match device.clone().without_autodiff().as_dispatch() {
        DispatchDevice::Cube(device) => Some(ask(&device.client())),
        #[allow(unreachable_patterns, reason = "other backends may not be linked")]
        _ => None,
    }
}
