//! What devices were asked for and have not begun with. Fusion holds operations back, and the thread that serves a device sleeps, until
//! somebody waits for it; where one after the other is waited for, devices begin one after the other.

use burn::tensor::Device;

/// Has a device begin, without waiting until it has.
pub(crate) fn begin(device: &Device) {
    #[cfg(all(feature = "cubecl", feature = "fusion"))]
    if let Some(client) = client(device) {
        client.flush_queue();
    }
    #[cfg(not(all(feature = "cubecl", feature = "fusion")))]
    let _ = device;
}

/// Waits until all that a device was asked for has been launched, or has failed to be. Unlike `Device::flush` it does not wait for
/// what was launched before: the second of two of those lets CubeCL's thread wait for the device, to reuse memory of the host.
pub(crate) fn launch(device: &Device) -> Result<(), String> {
    #[cfg(all(feature = "cubecl", feature = "fusion"))]
    if let Some(client) = client(device) {
        return client.try_sync(|| ()).map_err(|error| format!("{error:?}"));
    }
    #[cfg(not(all(feature = "cubecl", feature = "fusion")))]
    let _ = device;
    Ok(())
}

#[cfg(all(feature = "cubecl", feature = "fusion"))]
fn client(device: &Device) -> Option<burn_fusion::Client<burn_cubecl::fusion::FusionCubeRuntime>> {
    use burn::backend::DispatchDevice;

    match device.as_dispatch() {
        DispatchDevice::Cube(device) => {
            Some(burn_fusion::get_client::<burn_cubecl::CubeBackend>(device))
        }
        #[allow(unreachable_patterns, reason = "others are features")]
        _ => None,
    }
}
