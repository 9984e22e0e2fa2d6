use burn::tensor::DType;

/// Invalid CSR pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Not rows + 1 offsets.
    #[error("indptr has {found} entries, but {rows} rows need {}", rows + 1)]
    IndptrLength {
        /// Rows.
        rows: usize,
        /// Offsets.
        found: usize,
    },
    /// Offsets not from 0 to `entries`.
    #[error("indptr runs from {first} to {last}, but must run from 0 to the {entries} entries")]
    IndptrEnds {
        /// First.
        first: u32,
        /// Last.
        last: u32,
        /// Entries.
        entries: usize,
    },
    /// Offsets decrease.
    #[error("indptr decreases at row {row}: from {before} to {after}")]
    IndptrOrder {
        /// Row.
        row: usize,
        /// Start.
        before: u32,
        /// End.
        after: u32,
    },
    /// Column out of range.
    #[error("column {column} of entry {entry} is out of range: the matrix has {cols} columns")]
    Column {
        /// Position.
        entry: usize,
        /// Column.
        column: u32,
        /// Columns.
        cols: usize,
    },
    /// Too large for 32-bit offsets.
    #[error("{what}: {found} exceed the limit of {limit}")]
    TooLarge {
        /// Quantity.
        what: &'static str,
        /// Found.
        found: usize,
        /// Limit.
        limit: usize,
    },
}

/// Invalid CSR matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// Invalid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Unsorted columns.
    #[error("row {row} is not sorted: column {column} comes after column {before}")]
    Unsorted {
        /// Row.
        row: usize,
        /// Column.
        column: u32,
        /// Predecessor.
        before: u32,
    },
    /// Repeated column.
    #[error("row {row} has column {column} twice")]
    Duplicate {
        /// Row.
        row: usize,
        /// Column.
        column: u32,
    },
    /// Row out of range.
    #[error("row {row} of entry {entry} is out of range: the matrix has {rows} rows")]
    Row {
        /// Position.
        entry: usize,
        /// Row.
        row: u32,
        /// Rows.
        rows: usize,
    },
    /// Different id counts.
    #[error("{rows} row ids, but {cols} column ids")]
    Ids {
        /// Row ids.
        rows: usize,
        /// Column ids.
        cols: usize,
    },
    /// Wrong value count.
    #[error("{found} values for {entries} entries")]
    Values {
        /// Entries.
        entries: usize,
        /// Values.
        found: usize,
    },
    /// Wrong size.
    #[error("{found} {what}, but {expected} are needed")]
    Size {
        /// Rows or columns.
        what: &'static str,
        /// Found.
        found: usize,
        /// Needed.
        expected: usize,
    },
    /// Different dtypes.
    #[error("the matrices are of {first:?} and {other:?}")]
    Dtypes {
        /// Of the first.
        first: DType,
        /// Of another.
        other: DType,
    },
    /// Different devices.
    #[error("the matrices are on different devices, {first} and {other}")]
    Devices {
        /// Of the first.
        first: String,
        /// Of another.
        other: String,
    },
    /// Nothing to stack.
    #[error("there is no matrix to stack")]
    Nothing,
    /// Unsupported dtype.
    #[error(
        "values of {dtype:?} are not supported on {device} (supported: F32, F16, BF16, F64 \
         where the device has it)"
    )]
    Dtype {
        /// Dtype.
        dtype: DType,
        /// Device.
        device: String,
    },
}
