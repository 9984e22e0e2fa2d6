//! The copy rate of the device: what a memory-bound kernel can reach.

use cubecl::{client::Client, prelude::*};

use crate::timing::measure;

#[cube(launch_unchecked)]
fn copy_kernel<N: Size>(source: &[Vector<f32, N>], target: &mut [Vector<f32, N>]) {
    if ABSOLUTE_POS < source.len() {
        target[ABSOLUTE_POS] = source[ABSOLUTE_POS];
    }
}

/// GB/s of a copy of `elements` f32, bytes read plus bytes written.
pub fn rate(client: &Client, elements: usize) -> anyhow::Result<f64> {
    let bytes = elements * size_of::<f32>();
    let source = client.create_from_slice(&vec![1u8; bytes]);
    let target = client.empty(bytes);
    let units = (elements / 4).div_ceil(256);
    let cubes = CubeCount::Static(units.min(32_768) as u32, units.div_ceil(32_768) as u32, 1);
    let ms = measure(client, || {
        // SAFETY: both buffers hold `elements` and the kernel checks each position.
        unsafe {
            copy_kernel::launch_unchecked(
                client,
                cubes.clone(),
                CubeDim::new_1d(256),
                4,
                BufferArg::from_raw_parts(source.clone(), elements),
                BufferArg::from_raw_parts(target.clone(), elements),
            );
        }
    })?;
    Ok(2.0 * bytes as f64 / ms / 1e6)
}
