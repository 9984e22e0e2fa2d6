//! Routines `plane` and `block`: rows in registers of a plane or cube (RTop-K, Fig. 3).
//!
//! ```text
//! load the row; several short rows share a plane
//! long rows, exact: a threshold by histograms of keys
//! floats: guess the threshold, or bisect for early stop
//! no valid guess: search on keys
//! list the selected columns in shared memory; sort the list if asked
//! gather their values, so that writes are coalesced
//! ```

use cubecl::{ir::ElemType, prelude::*};

use super::{
    bounds::RowBounds,
    config::RegisterConfig,
    layout::{RowLayout, RowRequest},
    loaded::{LoadedRow, RowSource},
    output::RowOutput,
};
use crate::{
    primitives::{bit_set::SelectedItems, team::Team},
    topk::{
        key::Element,
        options::MethodKind,
        threshold::{
            normal::{Normal, normal_on_device},
            register_row::Guess,
            search::SearchParams,
        },
    },
};

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn register_select<E: Element, I: Numeric, N: Size, V: Size, W: Size>(
    call: &mut RegisterCall<E, I, N, V, W>,
    #[comptime] config: RegisterConfig,
    #[define(I)] _index: ElemType,
) {
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let own = UNIT_POS_X / comptime!(config.shape.lanes);
    let row = if comptime!(config.shape.planes > 1) {
        CUBE_POS
    } else {
        plane * comptime!(config.rows) + own as usize
    };
    // Only whole planes leave. Spare teams rewrite the last row.
    if plane_all(row >= call.layout.rows) {
        terminate!();
    }
    let row = min(row, call.layout.rows - 1);
    call.select(row, config);
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct RegisterCall<E: Element, I: Numeric, N: Size, V: Size, W: Size> {
    input: &'static [Vector<E, N>],
    /// `input` by elements.
    pub elements: &'static [E],
    /// By `V`; by `N` if dense.
    pub values: &'static mut [Vector<E, V>],
    /// By `W`; single if dense.
    pub indices: &'static mut [Vector<I, W>],
    bounds: RowBounds,
    pub layout: RowLayout,
    pub params: SearchParams,
    pub normal: Normal,
}

#[cube]
impl<E: Element, I: Numeric, N: Size, V: Size, W: Size> RegisterCall<E, I, N, V, W> {
    pub fn select(&mut self, row: usize, #[comptime] config: RegisterConfig) {
        let request = RowRequest::new(&self.bounds, row, self.layout, self.params);
        let team = Team::of(request.layout.cols, config.shape, config.ragged);
        let loaded = self.load(row, request.first, team, config);

        if comptime!(config.histogram) {
            let mut bits = 0u32.runtime();
            if request.params.k > 0 {
                bits = loaded.keys(false).select_by_histogram(request.params.k);
            }
            if comptime!(config.listed > 0) {
                self.write(&loaded, bits, row, &request, config);
            } else {
                let again = self.reload(row, request.first, team, config);
                self.write(&again, bits, row, &request, config);
            }
        } else {
            self.search(&loaded, row, &request, config);
        }
    }

    fn search(
        &mut self,
        loaded: &LoadedRow<E, N>,
        row: usize,
        request: &RowRequest,
        #[comptime] config: RegisterConfig,
    ) {
        let team = loaded.team;
        // Empty rows search with their plane.
        let params = if comptime!(config.ragged) { request.search() } else { self.params };
        let guess = if comptime!(config.floats) {
            let singles = loaded.singles();
            let guess = if comptime!(config.search.method == MethodKind::Exact) {
                let normal = if comptime!(config.ragged) {
                    normal_on_device(params.k, max(team.cols, 1))
                } else {
                    self.normal
                };
                singles.guess(params.k, &normal, config.search.largest)
            } else {
                singles.early_stop(params.k, params.max_iter, config.quantized_midpoints)
            };
            let mut valid = guess.valid;
            if plane_any(guess.near_zero) {
                // 16-bit floats would occupy registers until here.
                let unsure = if comptime!(size_of::<E>() < size_of::<f32>()) {
                    self.reload(row, request.first, team, config).singles().has_unsure()
                } else {
                    singles.has_unsure()
                };
                valid = valid && !(guess.near_zero && unsure);
            }
            Guess { bits: guess.bits, valid, near_zero: guess.near_zero }
        } else {
            Guess { bits: 0u32.runtime(), valid: false.runtime(), near_zero: false.runtime() }
        };
        // Or compilers keep each comparison.
        let bits = plane_shuffle(guess.bits, UNIT_POS_X);
        let found = if comptime!(config.ragged) {
            plane_all(guess.valid || team.cols == 0)
        } else {
            plane_all(guess.valid)
        };
        if comptime!(config.listed > 0) {
            let mut bits = bits;
            if !found {
                bits = if comptime!(config.floats) {
                    self.reload(row, request.first, team, config).keys(true).select(&params)
                } else {
                    loaded.keys(config.floats).select(&params)
                };
            }
            self.write(loaded, bits, row, request, config);
        } else if found {
            self.write(loaded, bits, row, request, config);
        } else {
            let bits = loaded.keys(config.floats).select(&params);
            let again = self.reload(row, request.first, team, config);
            self.write(&again, bits, row, request, config);
        }
    }

    fn load(
        &self,
        row: usize,
        first: u32,
        team: Team,
        #[comptime] config: RegisterConfig,
    ) -> LoadedRow<E, N> {
        let (strided, search) = comptime!((config.strided, config.search));
        LoadedRow::new(&RowSource::new(self.input, row, first, self.layout, strided, search), team)
    }

    /// Stops compilers from keeping elements.
    fn reload(
        &self,
        row: usize,
        first: u32,
        team: Team,
        #[comptime] config: RegisterConfig,
    ) -> LoadedRow<E, N> {
        let low = plane_shuffle(row as u32, UNIT_POS_X) as usize;
        self.load((row - row as u32 as usize) + low, first, team, config)
    }

    fn write(
        &mut self,
        loaded: &LoadedRow<E, N>,
        bits: u32,
        row: usize,
        request: &RowRequest,
        #[comptime] config: RegisterConfig,
    ) {
        let ordered = comptime!(
            !(config.listed > 0 && config.shape.can_transpose())
                && (config.indices
                    || !config.dense
                    || config.search.method == MethodKind::EarlyStop)
        );
        let bits =
            if comptime!(config.ragged) { select(loaded.team.cols == 0, 0u32, bits) } else { bits };
        let selected = SelectedItems::new(bits, loaded.team, ordered);
        let mut output = RowOutput::new(self.values, self.indices, row, request, config);
        if comptime!(config.ragged) {
            output.pad(&loaded.team, request.slots);
        }
        if comptime!(config.dense) {
            output.write_dense::<N>(loaded, &selected);
        } else if comptime!(config.listed > 0) {
            let length = comptime!(config.list_length() * config.cube_rows);
            let mut columns = Shared::<[u32]>::new_slice(length);
            let list = output.list(&loaded.team, &selected, &mut columns);
            output.write_list(self.elements, row, request, &loaded.team, list, &mut columns);
        } else {
            output.write_from_registers::<N>(loaded, &selected);
        }
    }
}
