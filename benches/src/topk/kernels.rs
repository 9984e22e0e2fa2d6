//! Top-k by the kernels.

use bytemuck::cast_slice;
use cubecl::{client::Client, prelude::*, server::Handle};
use sparsek_kernels::{
    KernelError,
    topk::{Routine, Rows, Scatter, Selected, TopkOptions, argtopk, scatter, topk, topk_mask},
};
use sparsek_tests::element::Element;

use super::{
    check::{CHECKED_ROWS, Output, check},
    problem::{Form, Problem},
};
use crate::timing::Ready;

pub fn ready<T: Element>(client: &Client, problem: &Problem<T>) -> anyhow::Result<Ready<'static>> {
    let operation = Operation::new(client, problem)?;
    let run = move || Ok(operation.launch()?);
    Ready::kernels(client, run, |buffers| match buffers {
        Buffers::Pairs(selected) => Ok(check_pairs(client, problem, selected, CHECKED_ROWS)?.0),
        Buffers::Dense(values) => {
            let values = client.read_one(values)?;
            check(problem, &Output::Dense(cast_slice(&values)), CHECKED_ROWS)
        }
        Buffers::Indices(indices) => {
            let indices = client.read_one(indices)?;
            check(problem, &Output::Indices(u32::from_bytes(&indices)), CHECKED_ROWS)
        }
    })
}

/// Columns of the selected elements, after comparing every row with the oracle.
pub fn checked_selection<T: Element>(
    client: &Client,
    problem: &Problem<T>,
) -> anyhow::Result<Vec<u32>> {
    let operation = Operation::new(client, problem)?;
    let selected = operation.select()?;
    Ok(check_pairs(client, problem, selected, usize::MAX)?.1)
}

/// Returns the number of rows compared and the columns.
fn check_pairs<T: Element>(
    client: &Client,
    problem: &Problem<T>,
    selected: Selected,
    most: usize,
) -> anyhow::Result<(usize, Vec<u32>)> {
    let values = client.read_one(selected.values)?;
    let indices = u32::from_bytes(&client.read_one(selected.indices)?).to_vec();
    let output = Output::Pairs(cast_slice(&values), &indices);
    let checked = check(problem, &output, most)?;
    Ok((checked, indices))
}

enum Buffers {
    Pairs(Selected),
    Dense(Handle),
    Indices(Handle),
}

struct Operation {
    client: Client,
    form: Form,
    routine: Option<Routine>,
    options: TopkOptions,
    rows: Rows,
    /// For the gradient: the gradient of the values, and their columns.
    upstream: Option<(Handle, Handle)>,
}

impl Operation {
    fn new<T: Element>(client: &Client, problem: &Problem<T>) -> anyhow::Result<Self> {
        let case = problem.case;
        let handle = client.create_from_slice(cast_slice(problem.input));
        let mut rows = Rows::contiguous(handle, T::elem_type(), case.rows, case.cols);
        if let Some(columns) = &problem.columns {
            let buffer = |bounds: Vec<u32>| client.create_from_slice(cast_slice(&bounds));
            let ends = buffer(columns.iter().map(|columns| columns.end).collect());
            rows = if columns.iter().all(|columns| columns.start == 0) {
                rows.with_lengths(ends)
            } else {
                rows.with_bounds(
                    buffer(columns.iter().map(|columns| columns.start).collect()),
                    ends,
                )
            };
        }
        let mut operation = Self {
            client: client.clone(),
            form: problem.form,
            routine: problem.routine,
            options: problem.options(),
            rows,
            upstream: None,
        };
        if problem.form == Form::Gradient {
            let gradients = client.create_from_slice(cast_slice(&problem.gradients));
            operation.upstream = Some((gradients, operation.select()?.indices));
        }
        Ok(operation)
    }

    fn select(&self) -> Result<Selected, KernelError> {
        let index = u32::elem_type_native();
        let routine = self.routine;
        topk(&self.client, &self.rows, &self.options, index, routine)
    }

    fn launch(&self) -> Result<Buffers, KernelError> {
        let Some((gradients, indices)) = &self.upstream else {
            return match self.form {
                Form::Mask => {
                    let (rows, options) = (&self.rows, &self.options);
                    topk_mask(&self.client, rows, options, None, self.routine)
                        .map(|masked| Buffers::Dense(masked.values))
                }
                Form::Indices => {
                    let index = u32::elem_type_native();
                    argtopk(&self.client, &self.rows, &self.options, index, self.routine)
                        .map(Buffers::Indices)
                }
                _ => self.select().map(Buffers::Pairs),
            };
        };
        let request = Scatter {
            source: gradients,
            dtype: self.rows.dtype,
            indices,
            index: u32::elem_type_native(),
            rows: self.rows.rows,
            cols: self.rows.cols,
            k: self.options.k,
            dense: false,
        };
        scatter(&self.client, &request).map(Buffers::Dense)
    }
}
