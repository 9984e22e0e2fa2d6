use super::tuning::{
    BLOCK_MIN_ENTRIES, BLOCKS_MIN_NNZ, BUSY_ITEMS, LOAD, MAX_BLOCKS, MAX_PART, MIN_PART,
};

pub(super) const ITEM_WORDS: usize = 4;
/// A zero per bank follows a block.
pub(super) const BANKS: usize = 32;
/// First load and loads, packed; loads.
pub(super) const EXTENT: usize = 2;
/// Alignment in words, for bindings.
const SECTION: usize = 64;

/// Elements of a [`Partition`](super::Partition).
pub fn partition_len(rows: usize, nnz: usize) -> usize {
    ITEM_WORDS * (items(rows, nnz) + cut_rows(nnz))
}

pub(super) fn part(nnz: usize) -> usize {
    (nnz / BUSY_ITEMS).next_power_of_two().clamp(MIN_PART, MAX_PART)
}

pub(super) fn cut_rows(nnz: usize) -> usize {
    nnz / (part(nnz) + 1)
}

pub(super) fn items(rows: usize, nnz: usize) -> usize {
    rows + 2 * cut_rows(nnz)
}

/// Whether [`ColumnBlocks`](super::ColumnBlocks) pay for `[rows, columns, entries]`.
pub fn column_blocks_pay([rows, cols, nnz]: [usize; 3], max_columns: usize) -> bool {
    let blocks = cols.div_ceil(max_columns.max(1));
    let many = nnz >= BLOCKS_MIN_NNZ && rows > 0 && nnz / rows >= BLOCK_MIN_ENTRIES * blocks;
    max_columns > 0 && blocks <= MAX_BLOCKS && many
}

/// Elements of [`ColumnBlocks`](super::ColumnBlocks) for `[rows, columns, entries]`.
pub fn column_blocks_len(size: [usize; 3], max_columns: usize) -> usize {
    extent_words(size, max_columns) + max_loads(size, max_columns) * LOAD / 2
}

/// Balances the blocks without adding any.
pub(super) fn block_columns(cols: usize, max_columns: usize) -> usize {
    let most = (max_columns / BANKS * BANKS).max(BANKS);
    let blocks = cols.div_ceil(most).max(1);
    cols.div_ceil(blocks).next_multiple_of(BANKS).max(BANKS)
}

pub(super) fn extent_words([rows, cols, _]: [usize; 3], max_columns: usize) -> usize {
    let blocks = cols.div_ceil(block_columns(cols, max_columns));
    (EXTENT * rows * blocks).next_multiple_of(SECTION)
}

pub(super) fn max_loads([rows, cols, nnz]: [usize; 3], max_columns: usize) -> usize {
    let blocks = cols.div_ceil(block_columns(cols, max_columns));
    nnz / LOAD + (rows * blocks).min(nnz).max(1)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty(0, 32)]
    #[case(1, 32)]
    #[case(33, 32)]
    #[case(100, 64)]
    #[case::reddit(232_965, 58_016)]
    #[case(65_536, 65_504)]
    fn blocks_have_similar_lengths(#[case] cols: usize, #[case] most: usize) {
        let columns = block_columns(cols, most);
        assert!(columns.is_multiple_of(BANKS) && columns <= most, "{columns}");
        assert_eq!(cols.div_ceil(columns), cols.div_ceil(most));
        assert_eq!(columns, block_columns(cols, columns));
    }
}
