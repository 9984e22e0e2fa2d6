//! Properties of a distance, by which routines are chosen and compiled.

/// The gradient of a distance with respect to the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gradient {
    /// Σ a b.
    Product,
    /// Σ (a − b)².
    Square,
    /// √Σ (a − b)².
    Root,
    /// 1 − Σ a b / (‖a‖ ‖b‖), with squared norms.
    Angle,
    /// Σ |a − b|.
    Sign,
}

/// How a distance sums against dense rows, whose absent values are
/// [`Semiring::absent`](crate::distance::Semiring::absent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// Products are sums and zero where either value is, so the entries of one row suffice.
    Products,
    /// The entries of both rows add to the core: half of
    /// [`Semiring::direct`](crate::distance::Semiring::direct) if the other row has the column,
    /// else all of it. `direct` is symmetric.
    Halves,
    /// The entries of the left row add
    /// [`Semiring::contribution`](crate::distance::Semiring::contribution) to the total.
    Left,
    /// The entries of both rows add products, or
    /// [`Semiring::direct`](crate::distance::Semiring::direct) with [`Needs::union`]. A pair of
    /// zeros gives the identity, and a column may count twice.
    Either,
}

/// The factors of a total that is an inner product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Prepared values.
    Values,
    /// Values divided by the root of their row's norm.
    Quotients,
    /// 1 for each nonzero value.
    Ones,
}

/// What to do if squares, powers or sums leave the range of the dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rescale {
    /// Multiplies each row by a power of two first. The distance must not depend on it.
    Rows,
    /// Evaluates a pair again if [`Semiring::scale`](crate::distance::Semiring::scale) is out of
    /// range, with both rows divided by their greatest magnitude. The distance must not depend on
    /// it.
    Pair,
    /// Evaluates a pair again if the core is out of range, by
    /// [`Semiring::direct`](crate::distance::Semiring::direct) of differences divided by the
    /// greatest.
    ///
    /// The distance grows with this power of the differences, and `direct` depends on the
    /// difference alone.
    Differences(u32),
    /// As `Differences(1)`, but only for cores that are too large: a sum of differences.
    Sum,
    /// Evaluates a pair again if the total is out of range or NaN.
    /// [`Semiring::direct`](crate::distance::Semiring::direct), a slower and safer form of
    /// [`Semiring::product`](crate::distance::Semiring::product), then replaces it.
    Careful,
}

impl Rescale {
    /// Whether pairs are evaluated again.
    pub(in crate::distance) const fn pairs(rescale: Option<Self>) -> bool {
        matches!(
            rescale,
            Some(Self::Pair | Self::Differences(_) | Self::Sum | Self::Careful)
        )
    }

    /// Returns the power with which the distance grows.
    pub(in crate::distance) const fn degree(rescale: Option<Self>) -> u32 {
        match rescale {
            Some(Self::Differences(degree)) => degree,
            Some(Self::Sum) => 1,
            _ => 0,
        }
    }
}

/// The properties of a distance.
///
/// The first fields state its algebra, the last ones how routines use it. Begin with a constant,
/// such as [`Needs::SUMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs {
    /// Uses [`Semiring::norm`](crate::distance::Semiring::norm) or
    /// [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// Uses [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// Uses [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// Is infinite unless the right row has all columns of the left.
    ///
    /// That is, unless [`Semiring::other`](crate::distance::Semiring::other) sums to the left row's
    /// [`Semiring::norm`](crate::distance::Semiring::norm), and no column adds less to it. Rows are
    /// left early once no distance can be finite. With [`Dense::Left`], sums are infinite then.
    pub covered: bool,
    /// Evaluates [`Semiring::direct`](crate::distance::Semiring::direct) again if the core is small
    /// relative to [`Semiring::scale`](crate::distance::Semiring::scale).
    pub direct: bool,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) and
    /// [`Semiring::direct`](crate::distance::Semiring::direct) have maxima instead of sums; nothing
    /// is below 0. If a pair is evaluated again, its total is the greatest possible core.
    pub maxima: bool,
    /// [`Semiring::direct`](crate::distance::Semiring::direct) sums over the columns of either row,
    /// by the paper's non-annihilating product. Routines that walk those columns use it instead of
    /// products.
    pub union: bool,
    /// A column of one row only adds nothing. Otherwise products run over the columns of either
    /// row, with 0 for absent values.
    pub annihilates: bool,
    /// How it sums against dense rows, if it can.
    pub dense: Option<Dense>,
    /// The factors, if the total is an inner product. Requires [`Dense::Products`].
    pub inner: Option<Inner>,
    /// d(x, y) = d(y, x), rounding included.
    pub symmetric: bool,
    /// Uses logarithms or powers, which some devices lack for f64.
    pub logarithms: bool,
    /// Has a parameter greater than 0.
    pub parameter: bool,
    /// Its gradient, if it has one.
    pub gradient: Option<Gradient>,
    /// Larger is nearer.
    pub largest: bool,
    /// What to do if values leave the range; `None` lets them overflow.
    pub rescale: Option<Rescale>,
}

impl Needs {
    /// Products over common columns, nothing else.
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
    /// Products that sum, and are zero where a value is.
    pub const SUMS: Self = Self {
        dense: Some(Dense::Products),
        ..Self::PRODUCTS
    };
    /// [`SUMS`](Self::SUMS) with norms.
    pub const NORMS: Self = Self {
        norms: true,
        ..Self::SUMS
    };
    /// [`NORMS`](Self::NORMS), evaluated again after cancellation.
    pub const DIRECT: Self = Self {
        direct: true,
        ..Self::NORMS
    };

    /// Marks the distance as symmetric.
    pub const fn symmetric(self) -> Self {
        Self {
            symmetric: true,
            ..self
        }
    }

    /// Whether dense tiles need the entries of both rows.
    pub(in crate::distance) const fn two_passes(&self) -> bool {
        matches!(self.dense, Some(Dense::Halves | Dense::Either))
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) is kept aside while a row is
    /// summed in parts. Counts for [`covered`](Self::covered) are not: they do not round, and are
    /// read meanwhile.
    pub const fn other_waits(&self) -> bool {
        self.other && !self.covered
    }

    /// Sets how it sums against dense rows.
    pub const fn dense(self, dense: Option<Dense>) -> Self {
        Self { dense, ..self }
    }

    /// Sets what to do if values leave the range.
    pub const fn rescale(self, rescale: Rescale) -> Self {
        Self {
            rescale: Some(rescale),
            ..self
        }
    }

    /// Marks the total as an inner product.
    pub const fn inner(self, inner: Inner) -> Self {
        Self {
            inner: Some(inner),
            ..self
        }
    }

    /// [`DIRECT`](Self::DIRECT), with sums over the columns of either row.
    pub const UNION: Self = Self {
        union: true,
        ..Self::DIRECT
    };
}
