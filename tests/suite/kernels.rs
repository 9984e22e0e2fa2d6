//! Helpers that call `sparsek_kernels`: upload, launch, read back.

use cubecl::client::Client;
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::server::Handle;
use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{self, Method, ROUTINES, Routine, Rows, TopkOptions};
use sparsek_tests::{
    backend::Backend,
    data::Matrix,
    element::Element,
    runner::{Outcome, Verdict},
    verify,
};

pub const I32: ElemType = ElemType::Int(IntKind::I32);
pub const I64: ElemType = ElemType::Int(IntKind::I64);
pub const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// `None` for automatic dispatch, then each routine, with their names in case names.
pub fn routines() -> impl Iterator<Item = (&'static str, Option<Routine>)> {
    let forced = ROUTINES.iter().map(|&routine| (routine.name(), Some(routine)));
    std::iter::once(("auto", None)).chain(forced)
}

/// Memory layout of a matrix in a device buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Contiguous,
    Transposed,
    Padded,
    /// Every third element of a buffer.
    Stepped,
    /// Padded to multiples of 8 elements, at the smallest nonzero offset that the device allows.
    Offset,
}

impl Layout {
    pub const ALL: [Self; 5] =
        [Self::Contiguous, Self::Transposed, Self::Padded, Self::Stepped, Self::Offset];

    pub fn upload<T: Element>(self, client: &Client, matrix: &Matrix<T>) -> Rows {
        let (rows, cols) = (matrix.rows, matrix.cols);
        let (row_stride, col_stride) = match self {
            Self::Contiguous => (cols, 1),
            Self::Transposed => (1, rows),
            Self::Padded => (cols + 5, 1),
            Self::Stepped => (cols * 3, 3),
            Self::Offset => (cols.next_multiple_of(8) + 8, 1),
        };
        let offset = match self {
            Self::Offset => client.properties().memory.alignment as usize,
            _ => 0,
        };
        let first = offset / size_of::<T>();
        let length = (rows.max(1) - 1) * row_stride + (cols.max(1) - 1) * col_stride + 1;
        // Unused elements must never be selected: the greatest bits and the least value in turn.
        let between = [T::of_bits(!T::SIGN), T::of(f64::NEG_INFINITY)];
        let length = first + length.max(rows * row_stride);
        let mut buffer: Vec<T> = (0..length).map(|at| between[at % 2]).collect();
        for i in 0..rows {
            for (j, &x) in matrix.row(i).iter().enumerate() {
                buffer[first + i * row_stride + j * col_stride] = x;
            }
        }
        let handle = client.create_from_slice(bytemuck::cast_slice(&buffer));
        let handle = handle.offset_start(offset as u64);
        let bounds = |bounds: &Option<Vec<i64>>| {
            let bounds = bounds.as_ref()?.iter().map(|&bound| bound as u32);
            // Avoid an empty buffer.
            let bounds: Vec<u32> = bounds.chain([0]).collect();
            Some(client.create_from_slice(bytemuck::cast_slice(&bounds)))
        };
        Rows {
            handle,
            dtype: T::elem_type(),
            rows,
            cols,
            row_stride,
            col_stride,
            starts: bounds(&matrix.starts),
            lengths: bounds(&matrix.lengths),
        }
    }
}

/// Reads `length` elements; does not touch the device if `length` is 0.
pub fn read<T: Element>(client: &Client, handle: Handle, length: usize) -> Vec<T> {
    if length == 0 {
        return Vec::new();
    }
    let read = client.read_one(handle).map_err(|error| KernelError::of_read(client, &error));
    let bytes = read.unwrap_or_else(|error| panic!("{error}"));
    let mut values: Vec<T> = bytemuck::pod_collect_to_vec(&bytes[..]);
    values.truncate(length);
    values
}

/// Reads positions of any index type as i64; all bits set becomes -1.
pub fn read_positions(client: &Client, handle: Handle, index: ElemType, length: usize) -> Vec<i64> {
    match index {
        I64 => read::<i64>(client, handle, length),
        U32 => read::<u32>(client, handle, length)
            .into_iter()
            .map(|position| i64::from(position as i32))
            .collect(),
        _ => read::<i32>(client, handle, length).into_iter().map(i64::from).collect(),
    }
}

pub fn topk<T: Element>(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<(Vec<T>, Vec<i64>), KernelError> {
    let length = input.rows * options.k;
    let selected = topk::topk(client, input, options, index, routine)?;
    Ok((
        read(client, selected.values, length),
        read_positions(client, selected.indices, index, length),
    ))
}

/// The reason to skip a documented refusal. Numbers become "…", so that equal reasons are counted
/// together.
pub fn refusal(error: &KernelError) -> Option<String> {
    match error {
        KernelError::DtypeOnDevice { .. } => Some(error.to_string()),
        KernelError::Routine { .. } => {
            let text = error.to_string();
            let mut words: Vec<&str> = text.split(' ').collect();
            words
                .iter_mut()
                .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
                .for_each(|word| *word = "…");
            Some(words.join(" "))
        }
        _ => None,
    }
}

/// Verifies selections; the case is skipped if all of them are refused.
pub struct Check<'a> {
    backend: &'a Backend,
    pub routine: Option<Routine>,
    pub passed: usize,
    refused: Option<String>,
}

impl<'a> Check<'a> {
    pub fn new(backend: &'a Backend, routine: Option<Routine>) -> Self {
        Self { backend, routine, passed: 0, refused: None }
    }

    pub fn client(&self) -> &'a Client {
        self.backend.client.as_ref().expect("only backends with a client have kernel cases")
    }

    pub fn all<T: Element>(
        &mut self,
        matrix: &Matrix<T>,
        layout: Layout,
        ks: &[usize],
        sorted: &[bool],
        largest: bool,
        method: Method,
    ) -> Result<(), String> {
        let input = layout.upload(self.client(), matrix);
        for &k in ks.iter().filter(|&&k| k <= matrix.cols) {
            for &sorted in sorted {
                let options = TopkOptions { k, largest, sorted, method };
                match topk::<T>(self.client(), &input, &options, I32, self.routine) {
                    Ok((values, positions)) => {
                        verify::selection(matrix, &options, Some(&values), &positions)?;
                        self.passed += 1;
                    }
                    Err(error) => self.refuse(error)?,
                }
            }
        }
        Ok(())
    }

    /// Records a documented refusal; fails on any other error.
    pub fn refuse(&mut self, error: KernelError) -> Result<(), String> {
        let allowed = match &error {
            // Every device supports these.
            KernelError::DtypeOnDevice { dtype, .. } => {
                ![f32::elem_type(), I32, U32].contains(dtype)
            }
            // Only forced routines may be unable to run, and long rows on the software driver.
            KernelError::Routine { .. } => self.routine.is_some() || self.backend.is_llvmpipe(),
            _ => false,
        };
        let Some(reason) = refusal(&error).filter(|_| allowed) else {
            return Err(format!("refused: {error}"));
        };
        // A routine's reason says more than a missing dtype.
        if self.refused.is_none() || matches!(error, KernelError::Routine { .. }) {
            self.refused = Some(reason);
        }
        Ok(())
    }

    pub fn end(self) -> Outcome {
        match (self.passed, self.refused) {
            (0, Some(reason)) => Ok(Verdict::Skipped(reason)),
            (0, None) => Err("nothing was checked".into()),
            _ => Ok(Verdict::Passed),
        }
    }
}
