//! HEAD

/// How distances change with the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gradient {
    /// Of Σ a b.
    Product,
    /// Of Σ (a − b)².
    Square,
    /// Of √Σ (a − b)².
    Root,
    /// Of 1 − Σ a b / (‖a‖ ‖b‖), given squared norms.
    Angle,
    /// Of Σ |a − b|.
    Sign,
}

/// How a distance adds up where rows of one of the matrices lie dense, absent values being [`Semiring::absent`](crate::distance::Semiring::absent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// Products are zero where either value is, and add up: those of the entries of one row are all there are.
    Products,
    /// Of both rows the entries add half of [`Semiring::direct`](crate::distance::Semiring::direct) where the other row has the column, all of it elsewhere, to
    /// the core. `direct` is the same both ways.
    Halves,
    /// The entries of the left row add [`Semiring::contribution`](crate::distance::Semiring::contribution) to the total.
    Left,
    /// Products with the entries of both rows, or [`Semiring::direct`](crate::distance::Semiring::direct) where there is a [`Needs::union`], one of zeros being
    /// the identity; a column may count twice.
    Either,
}

/// What is multiplied where the total is an inner product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Prepared values.
    Values,
    /// Values that were divided by the root of their row's norm.
    Quotients,
    /// A one for each value that is not zero.
    Ones,
}

/// How a distance is computed where squares, powers or sums of values leave the range of the dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rescale {
    /// Each row is multiplied by a power of two first, on which the distance does not depend.
    Rows,
    /// A pair is evaluated again with both rows divided by their greatest magnitude, on which the
    /// distance does not depend. It is where [`Semiring::scale`](crate::distance::Semiring::scale) is out of range.
    Pair,
    /// A pair is evaluated again by [`Semiring::direct`](crate::distance::Semiring::direct) of its differences divided by the
    /// greatest of them. The distance grows with this power of the differences, and `direct` of
    /// two values depends on their difference alone. It is where the core is out of range.
    Differences(u32),
    /// As `Differences(1)`, where only the upper end matters: a sum of differences.
    Sum,
    /// Evaluates a pair again where the total is out of range or NaN. The new total sums
    /// [`Semiring::direct`](crate::distance::Semiring::direct), a slower and safer form of [`Semiring::product`](crate::distance::Semiring::product).
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

    /// The power of the differences that the distance grows with.
    pub(in crate::distance) const fn degree(rescale: Option<Self>) -> u32 {
        match rescale {
            Some(Self::Differences(degree)) => degree,
            Some(Self::Sum) => 1,
            _ => 0,
        }
    }
}

/// What a distance needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs {
    /// [`Semiring::norm`](crate::distance::Semiring::norm) or [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// The distance is infinite unless [`Semiring::other`](crate::distance::Semiring::other) adds up to the left row's [`Semiring::norm`](crate::distance::Semiring::norm), of which no column adds
    /// less: the right row has all columns that the left one has. Rows are given up where that can be no longer. By
    /// [`Dense::Left`] sums are infinite then.
    pub covered: bool,
    /// [`Semiring::direct`](crate::distance::Semiring::direct) where the core is small beside [`Semiring::scale`](crate::distance::Semiring::scale).
    pub direct: bool,
    /// Of what [`Semiring::norm`](crate::distance::Semiring::norm) and [`Semiring::direct`](crate::distance::Semiring::direct) give the greatest counts, not the sum; nothing is below 0. Where a pair
    /// is evaluated again, its total is as great as the core can be.
    pub maxima: bool,
    /// [`Semiring::direct`](crate::distance::Semiring::direct) is a sum over the columns of either row: what the paper calls a non-annihilating product. Routines
    /// that go through those take it instead of products.
    pub union: bool,
    /// A column that only one of the rows has adds nothing; else products run over the columns of either, absent values being
    /// zero.
    pub annihilates: bool,
    /// How it adds up where one of the rows is dense, if it can.
    pub dense: Option<Dense>,
    /// What is multiplied, if the total is an inner product. Such products are of [`Dense::Products`].
    pub inner: Option<Inner>,
    /// That of x and y is that of y and x.
    pub symmetric: bool,
    /// Logarithms or powers, which not every device has of f64.
    pub logarithms: bool,
    /// A parameter that is greater than 0.
    pub parameter: bool,
    /// Its gradient, if it has one.
    pub gradient: Option<Gradient>,
    /// The nearer, the larger.
    pub largest: bool,
    /// What is done about values whose squares, powers or sums are out of range; nothing.
    pub rescale: Option<Rescale>,
}

impl Needs {
    /// Products of columns that both rows have, without anything else.
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
    /// Products that add up, and are zero where a value is.
    pub const SUMS: Self = Self {
        dense: Some(Dense::Products),
        ..Self::PRODUCTS
    };
    /// As [`SUMS`](Self::SUMS), with norms.
    pub const NORMS: Self = Self {
        norms: true,
        ..Self::SUMS
    };
    /// As [`NORMS`](Self::NORMS), evaluated again where most cancels.
    pub const DIRECT: Self = Self {
        direct: true,
        ..Self::NORMS
    };

    /// The same of a distance that is the same both ways.
    pub const fn symmetric(self) -> Self {
        Self {
            symmetric: true,
            ..self
        }
    }

    /// Whether the entries of both rows add up where a row is dense.
    pub(in crate::distance) const fn two_passes(&self) -> bool {
        matches!(self.dense, Some(Dense::Halves | Dense::Either))
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) waits, as totals do, while a row's columns are added up in parts. What tells whether columns are
    /// covered are counts, which do not round, and they are looked at.
    pub const fn other_waits(&self) -> bool {
        self.other && !self.covered
    }

    /// The same of a distance that adds up in this way where a row is dense.
    pub const fn dense(self, dense: Option<Dense>) -> Self {
        Self { dense, ..self }
    }

    /// The same of a distance that is computed in this way where values are out of range.
    pub const fn rescale(self, rescale: Rescale) -> Self {
        Self {
            rescale: Some(rescale),
            ..self
        }
    }

    /// The same of a distance whose total is an inner product.
    pub const fn inner(self, inner: Inner) -> Self {
        Self {
            inner: Some(inner),
            ..self
        }
    }

    /// As [`DIRECT`](Self::DIRECT), a sum over the columns of either row.
    pub const UNION: Self = Self {
        union: true,
        ..Self::DIRECT
    };
}
