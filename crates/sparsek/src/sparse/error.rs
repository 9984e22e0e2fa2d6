//! Errors of patterns and matrices.

use burn::tensor::DType;

/// Why a CSR pattern was refused.
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
    /// Offsets do not run from 0 to all entries.
    #[error("indptr runs from {first} to {last}, but must run from 0 to the {entries} entries")]
    IndptrEnds {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
        /// Entries.
        entries: usize,
    },
    /// Offsets decrease.
    #[error("indptr decreases at row {row}: from {before} to {after}")]
    IndptrOrder {
        /// The row.
        row: usize,
        /// Its start.
        before: u32,
        /// Its end.
        after: u32,
    },
    /// A column id is out of range.
    #[error("column {column} of entry {entry} is out of range: the matrix has {cols} columns")]
    Column {
        /// Its position.
        entry: usize,
        /// Its column.
        column: u32,
        /// Columns in total.
        cols: usize,
    },
    /// Too large for 32-bit offsets.
    #[error("{what}: {found} exceed the limit of {limit}")]
    TooLarge {
        /// Rows, columns or entries.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why a CSR matrix was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// Not a valid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Columns of a row do not ascend.
    #[error("row {row} is not sorted: column {column} comes after column {before}")]
    Unsorted {
        /// The row.
        row: usize,
        /// First column out of order.
        column: u32,
        /// Its predecessor.
        before: u32,
    },
    /// A row has a column twice.
    #[error("row {row} has column {column} twice")]
    Duplicate {
        /// The row.
        row: usize,
        /// The column.
        column: u32,
    },
    /// A row id is out of range.
    #[error("row {row} of entry {entry} is out of range: the matrix has {rows} rows")]
    Row {
        /// Its position.
        entry: usize,
        /// Its row.
        row: u32,
        /// Rows in total.
        rows: usize,
    },
    /// Row ids and column ids differ in number.
    #[error("{rows} row ids, but {cols} column ids")]
    Ids {
        /// Row ids.
        rows: usize,
        /// Column ids.
        cols: usize,
    },
    /// Values and entries differ in number.
    #[error("{found} values for {entries} entries")]
    Values {
        /// Entries.
        entries: usize,
        /// Values.
        found: usize,
    },
    /// Another number of rows or columns than needed.
    #[error("{found} {what}, but {expected} are needed")]
    Size {
        /// Rows or columns.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The needed number.
        expected: usize,
    },
    /// Matrices of different dtypes.
    #[error("the matrices are of {first:?} and {other:?}")]
    Dtypes {
        /// Dtype of the first.
        first: DType,
        /// Another dtype.
        other: DType,
    },
    /// Matrices on different devices.
    #[error("the matrices are on different devices, {first} and {other}")]
    Devices {
        /// Device of the first.
        first: String,
        /// Another device.
        other: String,
    },
    /// No matrices to stack.
    #[error("there is no matrix to stack")]
    Nothing,
    /// The dtype is not supported.
    #[error(
        "values of {dtype:?} are not supported on {device} (supported: F32, F16, BF16, F64 \
         where the device has it)"
    )]
    Dtype {
        /// The dtype.
        dtype: DType,
        /// The device.
        device: String,
    },
}
