//! Top-k by the kernels.

use bytemuck::cast_slice;
use cubecl::{client::Client, future, prelude::*, server::Handle};
use sparsek_kernels::{
    KernelError,
    topk::{Rows, Scatter, Selected, TopkOptions, scatter, topk, topk_mask},
};
use sparsek_tests::element::Element;

use super::{
    check::{CHECKED_ROWS, Output, check},
    problem::{Form, Problem},
};
use crate::timing::{Times, measure, wall_clock};

pub fn time<T: Element>(client: &Client, problem: &Problem<T>) -> anyhow::Result<Times> {
    let operation = Operation::new(client, problem)?;
    let run = || drop(operation.launch().expect("a valid case"));
    let first_ms = wall_clock(|| {
        run();
        Ok(future::block_on(client.sync())?)
    })?;
    let checked = match operation.launch()? {
        Buffers::Pairs(selected) => operation.check_pairs(selected, CHECKED_ROWS)?.0,
        Buffers::Dense(values) => {
            let values = client.read_one(values)?;
            check(problem, &Output::Dense(cast_slice(&values)), CHECKED_ROWS)?
        }
    };
    Ok(Times {
        ms: measure(client, run)?,
        first_ms,
        checked,
    })
}

/// Columns of the selected elements, after comparing every row with the oracle.
pub fn checked_selection<T: Element>(
    client: &Client,
    problem: &Problem<T>,
) -> anyhow::Result<Vec<u32>> {
    let operation = Operation::new(client, problem)?;
    let selected = operation.select()?;
    Ok(operation.check_pairs(selected, usize::MAX)?.1)
}

enum Buffers {
    Pairs(Selected),
    Dense(Handle),
}

struct Operation<'a, T> {
    client: &'a Client,
    problem: &'a Problem<'a, T>,
    options: TopkOptions,
    rows: Rows,
    /// For the gradient: the gradient of the values, and their columns.
    upstream: Option<(Handle, Handle)>,
}

impl<'a, T: Element> Operation<'a, T> {
    fn new(client: &'a Client, problem: &'a Problem<'a, T>) -> anyhow::Result<Self> {
        let case = problem.case;
        let handle = client.create_from_slice(cast_slice(problem.input));
        let mut operation = Self {
            client,
            problem,
            options: problem.options(),
            rows: Rows::contiguous(handle, T::elem_type(), case.rows, case.cols),
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
        let routine = self.problem.routine;
        topk(self.client, &self.rows, &self.options, index, routine)
    }

    fn launch(&self) -> Result<Buffers, KernelError> {
        let Some((gradients, indices)) = &self.upstream else {
            return match self.problem.form {
                Form::Mask => topk_mask(
                    self.client,
                    &self.rows,
                    &self.options,
                    None,
                    self.problem.routine,
                )
                .map(|masked| Buffers::Dense(masked.values)),
                _ => self.select().map(Buffers::Pairs),
            };
        };
        let request = Scatter {
            source: gradients,
            dtype: T::elem_type(),
            indices,
            index: u32::elem_type_native(),
            rows: self.rows.rows,
            cols: self.rows.cols,
            k: self.options.k,
            dense: false,
        };
        scatter(self.client, &request).map(Buffers::Dense)
    }

    /// Returns the number of rows compared and the columns.
    fn check_pairs(&self, selected: Selected, most: usize) -> anyhow::Result<(usize, Vec<u32>)> {
        let values = self.client.read_one(selected.values)?;
        let indices = u32::from_bytes(&self.client.read_one(selected.indices)?).to_vec();
        let output = Output::Pairs(cast_slice(&values), &indices);
        let checked = check(self.problem, &output, most)?;
        Ok((checked, indices))
    }
}
