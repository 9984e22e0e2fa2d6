//! The functions that the page calls.
//!
//! Two devices: Flex, and WebGPU where the browser has it. Reads from WebGPU are awaited, because
//! nothing can block in a browser.

mod devices;
mod neighbors;
mod topk;
mod training;

use burn::tensor::{Int, Tensor};
use wasm_bindgen::prelude::*;

unsafe extern "C" {
    /// Made by the linker.
    fn __wasm_call_ctors();
}

/// Runs when the module is loaded.
#[wasm_bindgen(start)]
fn start() {
    // SAFETY: the linker defines it. Calling it here, once, keeps the linker from calling it at the
    // start of every export. It registers CubeCL's operations.
    unsafe { __wasm_call_ctors() };
    std::panic::set_hook(Box::new(|info| {
        let text = JsValue::from(info.to_string());
        web_sys::console::error_1(&text);
        // The page shows it: a promise that waits for a panicked task never settles.
        let _ = js_sys::Reflect::set(&js_sys::global(), &"sparsekPanic".into(), &text);
    }));
}

/// Milliseconds since the page began.
fn now() -> f64 {
    let window = web_sys::window().expect("a page has a window");
    window.performance().expect("browsers have clocks").now()
}

async fn floats<const D: usize>(x: Tensor<D>) -> Result<Vec<f32>, JsError> {
    Ok(x.into_data_async().await?.try_into_vec_as::<f32>()?)
}

async fn ints<const D: usize>(x: Tensor<D, Int>) -> Result<Vec<u32>, JsError> {
    Ok(x.into_data_async().await?.iter::<u32>().collect())
}

/// Positions of nodes in a square, `[nodes, 2]`; see [`crate::layout`].
#[wasm_bindgen]
pub fn layout(nodes: usize, edges: &[u32], seed: u32) -> Vec<f32> {
    crate::layout::layout(nodes, edges, seed.into())
}
