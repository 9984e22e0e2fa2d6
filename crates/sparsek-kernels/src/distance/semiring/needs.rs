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

/// How a distance sums against dense rows, with
/// [`Semiring::absent`](crate::distance::Semiring::absent) for absent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// Products are zero where either value is, and sum: the entries of one row suffice.
    Products,
    /// The entries of both rows add half of [`Semiring::direct`](crate::distance::Semiring::direct)
    /// to the core if the other row has the column, else all. `direct` is symmetric.
    Halves,
    /// The entries of the left row add
    /// [`Semiring::contribution`](crate::distance::Semiring::contribution) to the total.
    Left,
    /// The entries of both rows add products, or
    /// [`Semiring::direct`](crate::distance::Semiring::direct) with [`Needs::union`]. Two zeros
    /// give the identity, and a column may count twice.
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

/// What to do if sums leave the range of the dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rescale {
    /// Multiplies each row by a power of two, on which the distance must not depend.
    Rows,
    /// If [`Semiring::scale`](crate::distance::Semiring::scale) is out of range, divides both rows
    /// by their greatest magnitude, on which the distance must not depend.
    Pair,
    /// If the core is out of range, sums [`Semiring::direct`](crate::distance::Semiring::direct) of
    /// differences divided by the greatest.
    ///
    /// The distance grows with this power of differences, on which alone `direct` depends.
    Differences(u32),
    /// As `Differences(1)`, only for cores that are too large: a sum of differences.
    Sum,
    /// If the total is out of range or NaN, sums
    /// [`Semiring::direct`](crate::distance::Semiring::direct), a slower and safer form of
    /// [`Semiring::product`](crate::distance::Semiring::product).
    Careful,
}

impl Rescale {
    pub(in crate::distance) const fn pairs(rescale: Option<Self>) -> bool {
        matches!(
            rescale,
            Some(Self::Pair | Self::Differences(_) | Self::Sum | Self::Careful)
        )
    }

    pub(in crate::distance) const fn degree(rescale: Option<Self>) -> u32 {
        match rescale {
            Some(Self::Differences(degree)) => degree,
            Some(Self::Sum) => 1,
            _ => 0,
        }
    }
}

/// The properties of a distance: first its algebra, then how routines use it.
///
/// Begin with a constant, such as [`Needs::SUMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs {
    // Algebra.
    /// Uses [`Semiring::norm`](crate::distance::Semiring::norm) or
    /// [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// Uses [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// Uses [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// Infinite unless the right row has all columns of the left.
    ///
    /// That is, unless [`Semiring::other`](crate::distance::Semiring::other) sums to the left row's
    /// [`Semiring::norm`](crate::distance::Semiring::norm). Each column adds at most as much to
    /// `other` as to `norm`, so rows are left once no distance can be finite. With
    /// [`Dense::Left`], sums are infinite then.
    pub covered: bool,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) and
    /// [`Semiring::direct`](crate::distance::Semiring::direct) have maxima, not sums, of values of
    /// at least 0. A total that forces another evaluation is the greatest possible core.
    pub maxima: bool,
    /// [`Semiring::direct`](crate::distance::Semiring::direct) sums over the columns of either row:
    /// the paper's non-annihilating product. Routines that walk those columns use it instead of
    /// products.
    pub union: bool,
    /// A column of one row only adds nothing. Otherwise products run over the columns of either
    /// row.
    pub annihilates: bool,
    /// The factors, if the total is an inner product. Requires [`Dense::Products`].
    pub inner: Option<Inner>,
    /// d(x, y) = d(y, x), rounding included.
    pub symmetric: bool,
    /// Its gradient, if it has one.
    pub gradient: Option<Gradient>,
    /// Larger is nearer.
    pub largest: bool,
    /// Uses logarithms or powers, which some devices lack for f64.
    pub logarithms: bool,
    /// Has a parameter greater than 0.
    pub parameter: bool,
    // How routines use it.
    /// Evaluates [`Semiring::direct`](crate::distance::Semiring::direct) if the core is small
    /// relative to [`Semiring::scale`](crate::distance::Semiring::scale).
    pub direct: bool,
    /// How it sums against dense rows, if it can.
    pub dense: Option<Dense>,
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

    pub(in crate::distance) const fn two_passes(&self) -> bool {
        matches!(self.dense, Some(Dense::Halves | Dense::Either))
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) waits while a row is summed in
    /// parts. Counts for [`covered`](Self::covered) do not: they never round.
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

    /// Sets the factors of its inner product.
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
