use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use crate::{
    dense::types::access_width,
    error::KernelError,
    launch::{Grid, argument},
    primitives::mma::Load,
};

pub(super) const LINES: usize = 128;
/// Inner elements per step.
pub(super) const TILE: usize = 16;
pub(super) const WIDTH: usize = 4;

pub(super) struct Panel<'a> {
    pub handle: &'a Handle,
    pub lines: usize,
    pub inner: usize,
    /// Stride of lines or inner elements.
    pub pitch: usize,
    /// Inner elements are contiguous.
    pub along: bool,
}

impl Panel<'_> {
    pub fn load(&self) -> usize {
        let loaded = if self.along { self.inner } else { self.lines };
        access_width(self.handle, size_of::<f32>(), [WIDTH], &[loaded, self.pitch])
    }
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PanelLayout {
    pub first_lines: usize,
    pub second_lines: usize,
    pub inner: usize,
    pub first_pitch: usize,
    pub second_pitch: usize,
    pub workers: usize,
    /// 1 with a bias.
    pub biased: usize,
}

pub(super) struct Call<'a> {
    pub client: &'a Client,
    pub panels: [&'a Panel<'a>; 2],
    pub bias: Option<&'a Handle>,
    pub output: &'a Handle,
    pub workers: usize,
}

impl Call<'_> {
    pub fn elements(&self) -> usize {
        self.workers * self.panels[0].lines * self.panels[1].lines
    }

    /// Cube per tile and worker.
    pub fn grid(&self, dim: CubeDim) -> Result<Grid, KernelError> {
        let [first, second] = self.panels;
        let tiles = first.lines.div_ceil(LINES) * second.lines.div_ceil(LINES);
        let largest = self.panels.map(|panel| panel.lines * panel.inner);
        let largest = largest[0].max(largest[1]).max(self.elements());
        Grid::new(self.client, tiles * self.workers, dim, largest)
    }

    /// Panels, bias, output.
    pub fn arguments(&self) -> Result<[BufferArg; 4], KernelError> {
        let dtype = ElemType::Float(FloatKind::F32);
        let [first, second] = self.panels;
        let elements = |panel: &Panel| panel.lines * panel.inner;
        Ok([
            argument(first.handle, "first factor", dtype, elements(first))?,
            argument(second.handle, "second factor", dtype, elements(second))?,
            match self.bias {
                Some(bias) => argument(bias, "bias", dtype, second.lines)?,
                None => argument(first.handle, "first factor", dtype, 1)?,
            },
            argument(self.output, "output", dtype, self.elements())?,
        ])
    }

    pub fn layout(&self) -> PanelLayoutLaunch {
        let [first, second] = self.panels;
        PanelLayoutLaunch::new(
            first.lines,
            second.lines,
            first.inner,
            first.pitch,
            second.pitch,
            self.workers,
            usize::from(self.bias.is_some()),
        )
    }

    /// Elements per store.
    pub fn store(&self) -> usize {
        access_width(self.output, size_of::<f32>(), [WIDTH], &[self.panels[1].lines])
    }
}

#[derive(CubeType, Clone, Copy)]
pub(super) struct Edge {
    pub first: usize,
    pub lines: usize,
    pub pitch: usize,
    #[cube(comptime)]
    pub along: bool,
    /// Elements per load.
    #[cube(comptime)]
    pub width: usize,
}

#[cube]
impl Edge {
    /// Four neighbors, zeros past the end.
    pub fn read<N: Size>(
        &self,
        matrix: &[Vector<f32, N>],
        line: usize,
        own: usize,
        inner: usize,
    ) -> Load {
        let mut line = line;
        let mut own = own;
        let mut four = Load::zeroed();
        #[unroll]
        for piece in 0..comptime!(WIDTH / self.width) {
            if line < self.lines && own < inner {
                let from = if comptime!(self.along) {
                    line * self.pitch + own
                } else {
                    own * self.pitch + line
                };
                let few = matrix[from / comptime!(self.width)];
                #[unroll]
                for i in 0..comptime!(self.width) {
                    four.insert(comptime!(piece * self.width + i), few.extract(i));
                }
            }
            if comptime!(self.along) {
                own += comptime!(self.width);
            } else {
                line += comptime!(self.width);
            }
        }
        four
    }
}
