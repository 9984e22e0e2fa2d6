//! Training steps that a captured graph can repeat.
//!
//! Launches keep their arguments, so Adam's rate and dropout's seed come from a row of
//! [`StepTable`] on the device.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use sparsek_kernels::dense::STEP_WORDS;

use crate::{
    dense::{AdamFactors, check_adam},
    ops::{DenseGradientOps, DenseOps},
};

/// Numbers of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRow {
    /// [`AdamFactors::rate`].
    pub rate: f32,
    /// [`AdamFactors::epsilon`].
    pub epsilon: f32,
    /// Seed of dropout.
    pub seed: [u32; 2],
}

impl StepRow {
    fn words(&self) -> [i32; STEP_WORDS] {
        let [low, high] = self.seed;
        [self.rate.to_bits(), self.epsilon.to_bits(), low, high].map(|word| word as i32)
    }
}

/// Rows of coming steps, and the next's number, on the device.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sparsek::steps::{StepRow, StepTable, dropout};
///
/// let row = |seed| StepRow { rate: 0.01, epsilon: 1e-8, seed: [seed, 0] };
/// let device = Device::flex();
/// let mut table = StepTable::new(&[row(1), row(2)], &device);
/// let draw = |table: &mut StepTable| {
///     let words = table.next_step();
///     dropout(Tensor::<1>::ones([100], &device), &words, 0.5, 0).into_data()
/// };
/// assert_ne!(draw(&mut table), draw(&mut table));
/// ```
#[derive(Clone, Debug)]
pub struct StepTable {
    table: Tensor<2, Int>,
    counter: Tensor<1, Int>,
}

impl StepTable {
    /// Uploads rows; panics without any.
    pub fn new(rows: &[StepRow], device: &Device) -> Self {
        assert!(!rows.is_empty(), "a table of no step");
        let words: Vec<i32> = rows.iter().flat_map(StepRow::words).collect();
        let device = &device.clone().without_autodiff();
        let table = TensorData::new(words, [rows.len(), STEP_WORDS]);
        Self {
            table: Tensor::from_data(table, (device, DType::I32)),
            counter: Tensor::from_data(TensorData::new(vec![0i32], [1]), (device, DType::I32)),
        }
    }

    /// Copies the next row, the last one again after the end. GPUs count in place: repeated graphs
    /// and clones count too.
    pub fn next_step(&mut self) -> StepWords {
        let (words, counter) = <Dispatch as DenseGradientOps>::next_step(
            self.table.clone().into_dispatch(),
            self.counter.clone().into_dispatch(),
        );
        self.counter = Tensor::from_dispatch(counter);
        StepWords(Tensor::from_dispatch(words))
    }
}

/// A step's row, on the device.
#[derive(Clone, Debug)]
pub struct StepWords(Tensor<1, Int>);

/// Multiplies elements by `1 / keep`, in f32, with probability `keep`, else zeroes them.
/// Differentiable.
///
/// Any shape. The seed in `words`, the `call`'s number in its step and an element's place decide,
/// alike on every backend. One launch; the gradient, another, stores no mask. Panics unless
/// 0 < `keep` ≤ 1.
pub fn dropout<const D: usize>(x: Tensor<D>, words: &StepWords, keep: f32, call: u32) -> Tensor<D> {
    assert!(keep > 0.0 && keep <= 1.0, "dropout: keep is {keep}, not above 0 and at most 1");
    let words = words.0.clone().into_dispatch();
    Tensor::from_dispatch(<Dispatch as DenseOps>::dropout(x.into_dispatch(), words, keep, call))
}

/// [`adam_step`](crate::dense::adam_step) in place, with rate and epsilon from `words`.
///
/// On GPUs, parameter and moments, if contiguous, keep their buffers, even if shared: copy what
/// must stay, and let none be a clone of another.
pub fn adam_step_in_place<const D: usize>(
    x: Tensor<D>,
    gradient: Tensor<D>,
    moments: [Tensor<D>; 2],
    words: &StepWords,
    factors: AdamFactors,
) -> (Tensor<D>, [Tensor<D>; 2]) {
    check_adam("adam_step_in_place", &x, &gradient, &moments);
    let [first, second] = moments;
    let (x, first, second) = <Dispatch as DenseGradientOps>::adam_step_in_place(
        x.into_dispatch(),
        gradient.into_dispatch(),
        first.into_dispatch(),
        second.into_dispatch(),
        words.0.clone().into_dispatch(),
        factors,
    );
    let moments = [first, second].map(Tensor::from_dispatch);
    (Tensor::from_dispatch(x), moments)
}
