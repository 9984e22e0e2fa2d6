use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    super::{
        kernels::delegates::{
            DelegateVectorConfig, StagedConfig, build_delegates, build_delegates_staged,
        },
        tuning::{CUBE_UNITS, STAGED_UNITS},
        types::{SubrangeCall, U32},
    },
    cut_vector::cut_vector,
};
use crate::{
    device::units_per_cube,
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::team::TeamShape,
    topk::key::Element,
};

impl<E: Element> SubrangeCall<'_, E> {
    /// Returns positions if β > 1.
    pub fn write_delegates(&self, keys: &Handle) -> Result<Option<Handle>, KernelError> {
        if self.partition.staged {
            self.staged_delegates(keys)?;
            return Ok(None);
        }
        let positions = (self.partition.beta > 1)
            .then(|| allocate(self.client, "positions", self.delegates(), U32))
            .transpose()?;
        self.build::<E::Key>(self.delegate_config(), keys, positions.as_ref(), None)?;
        Ok(positions)
    }

    pub fn delegate_config(&self) -> DelegateVectorConfig {
        DelegateVectorConfig::new(&self.vector(), &self.partition, CUBE_UNITS, self.options.largest)
    }

    /// Packs bf16 where possible.
    pub fn build<W: Numeric>(
        &self,
        config: DelegateVectorConfig,
        keys: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let source = DelegateSource {
            dtype: self.dtype,
            length: self.length,
            exponent: self.partition.exponent,
            config,
        };
        match source.packed_bf16() {
            Some(packed) => self.launch_build::<u32, W>(packed, keys, positions, groups),
            None => self.launch_build::<E, W>(source, keys, positions, groups),
        }
    }

    fn launch_build<S: Element, W: Numeric>(
        &self,
        source: DelegateSource,
        keys: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let DelegateSource { dtype, length, exponent, config } = source;
        let count = self.delegates();
        let subranges = length.div_ceil(1 << exponent);
        let cubes = subranges.div_ceil(config.subranges_per_cube());
        let dim = CubeDim::new_2d(config.cube.plane_lanes(), config.cube.planes);
        let grid = Grid::new(client, cubes, dim, length)?;
        let width = config.team.width;
        let positions = positions.map(|positions| argument(positions, "positions", U32, count));
        let key = S::Key::elem_type_native();
        let groups = groups.map(|groups| argument(groups, "groups", key, cubes));
        // SAFETY: reads stay below `length`, in whole loads.
        unsafe {
            build_delegates::launch_unchecked::<S, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                cut_vector(self.input, dtype, (length, exponent), width)?,
                argument(keys, "delegates", W::elem_type_native(), count)?,
                positions.transpose()?.into(),
                groups.transpose()?.into(),
                config,
            );
        }
        Ok(())
    }

    fn staged_delegates(&self, keys: &Handle) -> Result<(), KernelError> {
        let client = self.client;
        let count = self.delegates();
        let exponent = self.partition.exponent;
        let config = StagedConfig {
            exponent,
            width: self.vector().load_width(exponent),
            units: units_per_cube(client, STAGED_UNITS),
            largest: self.options.largest,
        };
        let dim = CubeDim::new_1d(config.units);
        let cubes = count.div_ceil(config.units as usize);
        let grid = Grid::new(client, cubes, dim, self.length)?;
        // SAFETY: reads stay below `length`, in whole loads.
        unsafe {
            build_delegates_staged::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                config.width,
                self.cut_vector(config.width)?,
                argument(keys, "delegates", self.key(), count)?,
                config,
            );
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct DelegateSource {
    dtype: ElemType,
    length: usize,
    exponent: u32,
    config: DelegateVectorConfig,
}

impl DelegateSource {
    fn packed_bf16(self) -> Option<Self> {
        let config = self.config;
        let packs = self.dtype == ElemType::Float(FloatKind::BF16)
            && config.beta == 1
            && config.team.width > 1
            && self.length.is_multiple_of(2);
        packs.then(|| Self {
            dtype: U32,
            length: self.length / 2,
            exponent: self.exponent - 1,
            config: DelegateVectorConfig {
                team: TeamShape { width: config.team.width / 2, ..config.team },
                packed_bf16: true,
                ..config
            },
        })
    }
}
