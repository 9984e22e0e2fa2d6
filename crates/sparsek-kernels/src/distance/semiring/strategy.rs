/// Gradient by a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gradient {
    /// Σ a b.
    Product,
    /// Σ (a − b)².
    Square,
    /// √Σ (a − b)².
    Root,
    /// 1 − Σ a b / (‖a‖ ‖b‖), norms squared.
    Angle,
    /// Σ |a − b|.
    Sign,
}

/// How a distance sums against dense rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// Sums of products, zero where a value is: one row's entries suffice.
    Products,
    /// Both rows' entries add symmetric [`Semiring::direct`](crate::distance::Semiring::direct) to
    /// the core: half in common columns.
    Halves,
    /// Left entries add [`Semiring::contribution`](crate::distance::Semiring::contribution).
    Left,
    /// Both rows' entries add products, or [`Semiring::direct`](crate::distance::Semiring::direct)
    /// with [`Needs::union`]; two zeros give the identity, columns may count twice.
    Either,
}

/// Factors of an inner product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Prepared values.
    Values,
    /// Values over the root of their norm.
    Quotients,
    /// 1 per nonzero value.
    Ones,
}

/// Remedy for sums out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rescale {
    /// Multiplies rows by powers of two; the distance must not change.
    Rows,
    /// If [`Semiring::scale`](crate::distance::Semiring::scale) is out of range, divides both rows
    /// by their greatest magnitude; the distance must not change.
    Pair,
    /// If the core is out of range, sums [`Semiring::direct`](crate::distance::Semiring::direct) of
    /// differences, its only input, over the greatest. The distance grows with this power.
    Differences(u32),
    /// `Differences(1)` for a sum: only large cores.
    Sum,
    /// If the total is out of range or NaN, sums
    /// [`Semiring::direct`](crate::distance::Semiring::direct), a safer, slower
    /// [`Semiring::product`](crate::distance::Semiring::product).
    Careful,
}

impl Rescale {
    pub(in crate::distance) const fn pairs(rescale: Option<Self>) -> bool {
        matches!(rescale, Some(Self::Pair | Self::Differences(_) | Self::Sum | Self::Careful))
    }

    pub(in crate::distance) const fn degree(rescale: Option<Self>) -> u32 {
        match rescale {
            Some(Self::Differences(degree)) => degree,
            Some(Self::Sum) => 1,
            _ => 0,
        }
    }
}

/// Properties of a distance. Begin with a constant such as [`Needs::SUMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs {
    /// Uses [`Semiring::norm`](crate::distance::Semiring::norm) or
    /// [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// Uses [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// Uses [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// Infinite unless the right row has all columns of the left:
    /// [`Semiring::other`](crate::distance::Semiring::other) sums to the left row's
    /// [`Semiring::norm`](crate::distance::Semiring::norm), with at most as much per column. Rows
    /// stop once nothing can be finite; with [`Dense::Left`], sums are then infinite.
    pub covered: bool,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) and
    /// [`Semiring::direct`](crate::distance::Semiring::direct) take maxima of values ≥ 0. A total
    /// that forces another evaluation is the greatest possible core.
    pub maxima: bool,
    /// [`Semiring::direct`](crate::distance::Semiring::direct), not products, over either row's
    /// columns: the paper's non-annihilating product.
    pub union: bool,
    /// A column of one row adds nothing; else products cover either row's columns.
    pub annihilates: bool,
    /// Factors of an inner product; needs [`Dense::Products`].
    pub inner: Option<Inner>,
    /// d(x, y) = d(y, x), rounding included.
    pub symmetric: bool,
    /// Gradient, if any.
    pub gradient: Option<Gradient>,
    /// Larger is nearer.
    pub largest: bool,
    /// Uses logarithms or powers, missing for f64 on some devices.
    pub logarithms: bool,
    /// Has a parameter above 0.
    pub parameter: bool,
    /// Evaluates [`Semiring::direct`](crate::distance::Semiring::direct) if the core is small
    /// against [`Semiring::scale`](crate::distance::Semiring::scale).
    pub direct: bool,
    /// Sums against dense rows.
    pub dense: Option<Dense>,
    /// Remedy for sums out of range; `None` overflows.
    pub rescale: Option<Rescale>,
}

impl Needs {
    /// Products over common columns.
    pub const PRODUCTS: Self = Self {
        norms: false,
        prepared: false,
        other: false,
        covered: false,
        direct: false,
        maxima: false,
        union: false,
        annihilates: true,
        dense: None,
        inner: None,
        symmetric: false,
        logarithms: false,
        parameter: false,
        gradient: None,
        largest: false,
        rescale: None,
    };
    /// Summed products, zero where a value is.
    pub const SUMS: Self = Self { dense: Some(Dense::Products), ..Self::PRODUCTS };
    /// [`SUMS`](Self::SUMS) with norms.
    pub const NORMS: Self = Self { norms: true, ..Self::SUMS };
    /// [`NORMS`](Self::NORMS), again after cancellation.
    pub const DIRECT: Self = Self { direct: true, ..Self::NORMS };

    /// Marks as symmetric.
    pub const fn symmetric(self) -> Self {
        Self { symmetric: true, ..self }
    }

    pub(in crate::distance) const fn two_passes(&self) -> bool {
        matches!(self.dense, Some(Dense::Halves | Dense::Either))
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) sums in parts; exact counts
    /// for [`covered`](Self::covered) do not.
    pub const fn other_waits(&self) -> bool {
        self.other && !self.covered
    }

    /// Sets `dense`.
    pub const fn dense(self, dense: Option<Dense>) -> Self {
        Self { dense, ..self }
    }

    /// Sets `rescale`.
    pub const fn rescale(self, rescale: Rescale) -> Self {
        Self { rescale: Some(rescale), ..self }
    }

    /// Sets `inner`.
    pub const fn inner(self, inner: Inner) -> Self {
        Self { inner: Some(inner), ..self }
    }

    /// [`DIRECT`](Self::DIRECT), over either row's columns.
    pub const UNION: Self = Self { union: true, ..Self::DIRECT };
}
