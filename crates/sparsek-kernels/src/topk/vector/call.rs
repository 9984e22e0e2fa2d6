//! The steps of a call: delegates, the subranges that they choose, the members among their elements.

use cubecl::{
    features::TypeUsage,
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    SHORT, U32, VectorOptions,
    chosen::SubrangesLaunch,
    elements::{Elements, Found},
    find::width,
    gather::{fetch_members, gather_candidates},
    options::Selection,
    plan::{Cut, Last, Plan},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::Element,
        options::TopkOptions,
        row::topk_rows,
        types::{Rows, Selected},
    },
};

/// A checked call.
pub(super) struct Call<'a> {
    pub client: &'a Client,
    pub input: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub options: &'a VectorOptions,
    pub index: ElemType,
    /// Where one cube that finishes says how many subranges it looked through, and how many of their elements, with
    /// delegates, are left.
    pub stats: Option<&'a Handle>,
}

impl Call<'_> {
    /// The members in index order.
    pub fn run<E: Element>(&self, plan: &Plan) -> Result<Selected, KernelError> {
        match plan {
            Plan::Whole(Selection::Rows) => {
                let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.options.largest,
                    ..TopkOptions::new(self.options.k)
                };
                topk_rows(self.client, &rows, &options, self.index, None)
            }
            Plan::Whole(selection) => {
                let elements = Elements {
                    client: self.client,
                    handle: self.input,
                    dtype: self.dtype,
                    length: self.length,
                    largest: self.options.largest,
                    filled: None,
                };
                let found = elements.select::<E>(*selection, self.options.k, None)?;
                self.fetch::<E>(None, None, &found.members)
            }
            Plan::Delegates(cut) => self.by_delegates::<E>(cut),
        }
    }

    fn by_delegates<E: Element>(&self, cut: &Cut) -> Result<Selected, KernelError> {
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        match &cut.last {
            Last::Finish(blueprint, way) => self.by_cube::<E>(cut, blueprint, way),
            Last::Select { first, last } => {
                if self.short(cut, [*first, *last]) {
                    let keys = allocate(self.client, "delegates", count, SHORT)?;
                    self.short_delegates::<E>(cut, &keys)?;
                    self.by_keys::<E, i16>(cut, keys, [*first, *last])
                } else {
                    let keys = allocate(self.client, "delegates", count, key)?;
                    self.delegates::<E>(cut, &keys)?;
                    self.by_keys::<E, E::Key>(cut, keys, [*first, *last])
                }
            }
            Last::Sift {
                first,
                last,
                blueprint,
            } => {
                let keys = allocate(self.client, "delegates", count, key)?;
                let positions = self.delegates::<E>(cut, &keys)?;
                let selections = [*first, *last];
                self.sift::<E>(cut, *blueprint, selections, &keys, positions.as_ref())
            }
        }
    }

    /// Whether keys of 16 bits do.
    fn short(&self, cut: &Cut, selections: [Selection; 2]) -> bool {
        let histograms = selections
            .iter()
            .all(|one| matches!(one, Selection::Radix | Selection::Bucket));
        let half = matches!(
            self.dtype,
            ElemType::Float(FloatKind::F16 | FloatKind::BF16)
        );
        let usage = self.client.properties().type_usage(SHORT);
        half && histograms && usage.contains(TypeUsage::Buffer) && !cut.staged
    }

    /// The members, by the `W` of delegates, one of each subrange, and of the elements of the best ones.
    fn by_keys<E: Element, W: Numeric>(
        &self,
        cut: &Cut,
        keys: Handle,
        [first, last]: [Selection; 2],
    ) -> Result<Selected, KernelError> {
        let count = cut.delegates(self.length);
        let dtype = W::elem_type_native();
        let best = self.select_keys(&keys, (dtype, count), first, None, None)?;
        // So that candidates may take their place.
        drop(keys);
        let count = self.options.k << cut.exponent;
        let candidates = self.gather::<E, W>(&best.members, count, cut.exponent)?;
        let notes = best.notes.as_ref();
        let found = self.select_keys(&candidates, (dtype, count), last, notes, None)?;
        let chosen = (&best.members, cut.exponent, 1);
        self.fetch::<E>(Some(chosen), None, &found.members)
    }

    /// The k greatest of some keys, of which there may be as many as the device says.
    pub(super) fn select_keys(
        &self,
        handle: &Handle,
        (dtype, length): (ElemType, usize),
        selection: Selection,
        known: Option<&Handle>,
        filled: Option<&Handle>,
    ) -> Result<Found, KernelError> {
        let keys = Elements {
            client: self.client,
            handle,
            dtype,
            length,
            largest: true,
            filled,
        };
        let k = self.options.k;
        match dtype.size() {
            8 => keys.select::<u64>(selection, k, known),
            2 => keys.select::<i16>(selection, k, known),
            _ => keys.select::<u32>(selection, k, known),
        }
    }

    /// What kernels are told of its subranges; of delegates, or of their groups, a cube may hold so many.
    pub(super) fn subranges(&self, cut: &Cut, held: usize) -> SubrangesLaunch {
        SubrangesLaunch::new(
            self.length,
            cut.delegates(self.length) as u32,
            held as u32,
            self.options.k as u32,
            cut.exponent,
        )
    }

    pub(super) fn key_dtype<E: Element>() -> ElemType {
        E::Key::elem_type_native()
    }

    /// The k best delegates and their places.
    pub(super) fn best<E: Element>(
        &self,
        plan: &Plan,
        keys: &Handle,
        count: usize,
    ) -> Result<Selected, KernelError> {
        let dtype = Self::key_dtype::<E>();
        let options = VectorOptions::new(self.options.k);
        let call = Call {
            client: self.client,
            input: keys,
            dtype,
            length: count,
            options: &options,
            index: U32,
            stats: None,
        };
        if dtype.size() == 8 {
            call.run::<u64>(plan)
        } else {
            call.run::<u32>(plan)
        }
    }

    pub(super) fn output(&self) -> Result<Selected, KernelError> {
        let k = self.options.k;
        Ok(Selected {
            values: allocate(self.client, "values", k, self.dtype)?,
            indices: allocate(self.client, "indices", k, self.index)?,
        })
    }

    fn gather<E: Element, W: Numeric>(
        &self,
        chosen: &Handle,
        slots: usize,
        exponent: u32,
    ) -> Result<Handle, KernelError> {
        let (client, length) = (self.client, self.length);
        let dtype = W::elem_type_native();
        let keys = allocate(client, "candidates", slots, dtype)?;
        let width = width(&self.vector::<E>(), exponent);
        let grid = Grid::elementwise(client, slots / width, length)?;
        // SAFETY: the kernel reads below `length`, whole loads of whole ones, and writes below `slots` only, which are whole subranges.
        unsafe {
            gather_candidates::launch_unchecked::<E, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, length / width * width)?,
                argument(self.input, "input", self.dtype, length)?,
                argument(chosen, "subranges", U32, self.options.k)?,
                argument(&keys, "candidates", dtype, slots)?,
                length,
                slots,
                exponent,
                dtype == SHORT,
                self.options.largest,
            );
        }
        Ok(keys)
    }

    /// Values and indices of members given by their places in the vector, or by their slots in the subranges of chosen delegates, or by
    /// where these stand in a list.
    pub(super) fn fetch<E: Element>(
        &self,
        chosen: Option<(&Handle, u32, u32)>,
        listed: Option<&Handle>,
        members: &Handle,
    ) -> Result<Selected, KernelError> {
        let k = self.options.k;
        let output = self.output()?;
        let grid = Grid::elementwise(self.client, k, self.length)?;
        let (subranges, exponent, delegates) = chosen.unwrap_or((members, 0, 1));
        let slots = |listed: &Handle| listed.size_in_used() as usize / size_of::<u32>();
        let listed = listed.map(|listed| argument(listed, "slots", U32, slots(listed)));
        // SAFETY: slots stand for elements below `length`.
        unsafe {
            fetch_members::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(subranges, "subranges", U32, k)?,
                argument(members, "members", U32, k)?,
                listed.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                k,
                exponent,
                delegates,
                chosen.is_none(),
                self.index,
            );
        }
        Ok(output)
    }
}
