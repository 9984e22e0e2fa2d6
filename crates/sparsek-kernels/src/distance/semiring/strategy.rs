/// Sums against dense rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// Sums of products that are zero where a value is.
    Products,
    /// Both rows' entries add symmetric [`Semiring::direct`](crate::distance::Semiring::direct) to
    /// the core, half in common columns.
    Halves,
    /// Left entries add [`Semiring::contribution`](crate::distance::Semiring::contribution),
    /// infinite where [`Algebra::covered`](crate::distance::Algebra::covered) fails.
    Left,
    /// Both rows' entries add products, or [`Semiring::direct`](crate::distance::Semiring::direct)
    /// with [`Strategy::union`]; columns may count twice, zeros not.
    Either,
}

/// Factors of an inner product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Prepared values.
    Values,
    /// Values over root norms.
    Quotients,
    /// 1 per nonzero value.
    Ones,
}

/// Remedy for sums out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rescale {
    /// Scales rows by powers of two; the distance must not change.
    Rows,
    /// Divides pairs by their greatest magnitude if
    /// [`Semiring::scale`](crate::distance::Semiring::scale) is out of range; likewise.
    Pair,
    /// If the core is out of range, sums [`Semiring::direct`](crate::distance::Semiring::direct) of
    /// scaled differences, its only input. The distance grows with this power.
    Differences(u32),
    /// `Differences(1)` for a sum: only large cores.
    Sum,
    /// If the total is out of range, sums [`Semiring::direct`](crate::distance::Semiring::direct),
    /// a safer [`Semiring::product`](crate::distance::Semiring::product).
    Careful,
}

/// Evaluation, built from constants such as [`SUMS`](Self::SUMS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strategy {
    /// Sums [`Semiring::direct`](crate::distance::Semiring::direct) if the core is small against
    /// [`Semiring::scale`](crate::distance::Semiring::scale).
    pub direct: bool,
    /// Sums [`Semiring::direct`](crate::distance::Semiring::direct) over either row's columns: the
    /// paper's non-annihilating product.
    pub union: bool,
    /// Against dense rows, if possible.
    pub dense: Option<Dense>,
    /// Factors of an inner product, with [`Dense::Products`].
    pub inner: Option<Inner>,
    /// Remedy, if any.
    pub rescale: Option<Rescale>,
}

impl Strategy {
    /// Products of stored entries.
    pub const PRODUCTS: Self =
        Self { direct: false, union: false, dense: None, inner: None, rescale: None };
    /// [`PRODUCTS`](Self::PRODUCTS), by [`Dense::Products`].
    pub const SUMS: Self = Self { dense: Some(Dense::Products), ..Self::PRODUCTS };
    /// [`SUMS`](Self::SUMS), again after cancellation.
    pub const DIRECT: Self = Self { direct: true, ..Self::SUMS };
    /// [`DIRECT`](Self::DIRECT), over either row's columns.
    pub const UNION: Self = Self { union: true, ..Self::DIRECT };

    /// Sets `dense`.
    pub const fn dense(self, dense: Option<Dense>) -> Self {
        Self { dense, ..self }
    }

    /// Sets `inner`.
    pub const fn inner(self, inner: Inner) -> Self {
        Self { inner: Some(inner), ..self }
    }

    /// Sets `rescale`.
    pub const fn rescale(self, rescale: Rescale) -> Self {
        Self { rescale: Some(rescale), ..self }
    }

    pub(in crate::distance) const fn two_passes(&self) -> bool {
        matches!(self.dense, Some(Dense::Halves | Dense::Either))
    }

    pub(in crate::distance) const fn rescales_pairs(&self) -> bool {
        !matches!(self.rescale, None | Some(Rescale::Rows))
    }

    pub(in crate::distance) const fn degree(&self) -> u32 {
        match self.rescale {
            Some(Rescale::Differences(degree)) => degree,
            Some(Rescale::Sum) => 1,
            _ => 0,
        }
    }
}
