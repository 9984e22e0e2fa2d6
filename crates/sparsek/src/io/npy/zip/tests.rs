use std::{io::Cursor, time::Instant};

use rstest::rstest;

use super::super::{
    Npz,
    container::{Member, container},
    tests::vector,
};

fn two() -> [Member; 2] {
    [
        Member::stored("a", vector("|u1", &[[1], [2], [3]])),
        Member::deflated("b", vector("<u2", &[[7, 1]; 5000])),
    ]
}

fn read(file: &[u8], name: &str) -> Result<Vec<u32>, String> {
    let mut npz = Npz::new(Cursor::new(file))?;
    npz.read(name, |array| array.into_u32())
}

fn refusal(file: &[u8], name: &str) -> String {
    let error = read(file, name).unwrap_err();
    assert!(error.len() < 1_700 && !error.contains(char::is_control), "{error}");
    error
}

#[rstest]
fn members_are_stored_or_deflated_small_or_large(#[values(false, true)] large: bool) {
    let members = two().map(|member| Member { large, ..member });
    let file = container(&members);
    assert_eq!(read(&file, "a").unwrap(), [1, 2, 3]);
    assert_eq!(read(&file, "b").unwrap(), [263; 5000]);
    let npz = Npz::new(Cursor::new(&file)).unwrap();
    assert!(npz.contains("a") && !npz.contains("c") && !npz.contains("a.npy"));
    assert!(refusal(&file, "c").contains("array c: it is missing"));
    if large {
        // As Python above 65,535 members: only the count is zip64.
        let mut many = file.clone();
        let (end, record) = (file.len(), file.len() - 98);
        many.copy_within(record + 40..record + 44, end - 10);
        many.copy_within(record + 48..record + 52, end - 6);
        assert_ne!(many, file);
        assert_eq!(read(&many, "a").unwrap(), [1, 2, 3]);
    }
    let mut with_comment = file.clone();
    let at = with_comment.len() - 2;
    with_comment[at..].fill(0xff);
    with_comment.resize(file.len() + 0xffff, b'P');
    assert_eq!(read(&with_comment, "a").unwrap(), [1, 2, 3]);
}

#[test]
fn headers_are_read_alone() {
    let mut header = Npz::new(Cursor::new(container(&two()))).unwrap();
    assert_eq!(header.header("b").unwrap().shape, [5000]);
}

#[test]
fn a_name_may_begin_with_another() {
    let members = ["a", "aa"].map(|name| Member::stored(name, vector("|u1", &[[9]])));
    assert_eq!(read(&container(&members), "aa").unwrap(), [9]);
}

#[rstest]
#[case::encrypted(|b: &mut Member| b.flags = 1, "encrypted")]
#[case::lzma(|b: &mut Member| b.method = 14, "compression Lzma; numpy's")]
#[case::shrink(|b: &mut Member| b.method = 1, "compression Shrink; numpy's")]
#[case::unknown(|b: &mut Member| b.method = 77, "compression Unknown; numpy's")]
#[case::not_stored(|b: &mut Member| b.method = 0, "bytes are there")]
#[case::checksum(|b: &mut Member| b.checksum ^= 1, "checksum")]
#[case::longer(|b: &mut Member| b.size -= 2, "bytes of values")]
#[case::shorter(|b: &mut Member| b.size += 2, "bytes of values")]
#[case::huge(|b: &mut Member| b.size = u64::from(u32::MAX) - 1, "cannot hold")]
#[case::larger(|b: &mut Member| (b.size, b.large) = (1 << 50, true), "cannot hold")]
fn broken_members_are_refused(#[case] change: fn(&mut Member), #[case] word: &str) {
    let [a, mut b] = two();
    change(&mut b);
    let file = container(&[a, b]);
    let error = refusal(&file, "b");
    assert!(error.contains(word), "{error}");
    assert_eq!(read(&file, "a").unwrap(), [1, 2, 3]);
}

#[test]
fn repeated_names_are_refused() {
    let [a, _] = two();
    let twice = container(&[a.clone(), a.clone()]);
    assert!(refusal(&twice, "a").contains("there twice"));
    let name = "\x1b[2J".repeat(10_000);
    let hostile = Member::stored(&name, Vec::new());
    let twice = container(&[a, hostile.clone(), hostile]);
    assert!(refusal(&twice, "a").contains("there twice"));
}

fn whole() -> Vec<u8> {
    container(&two())
}

#[rstest]
fn wrong_local_headers_change_nothing(#[values(0, 8, 26, 28, 29, 30)] at: usize) {
    let mut changed = whole();
    let second = changed.windows(4).rposition(|bytes| bytes == b"PK\x03\x04").unwrap();
    changed[second + at] ^= 0x40;
    match read(&changed, "b") {
        Ok(found) => assert_eq!(found, [263; 5000]),
        Err(_) => drop(refusal(&changed, "b")),
    }
}

#[rstest]
#[case::empty(vec![], "not an npz")]
#[case::magic(b"PK".to_vec(), "not an npz")]
#[case::magic(b"PK\x03\x04".to_vec(), "zip archive")]
#[case::npy(b"\x93NUMPY\x01\x00".to_vec(), "not an npz")]
#[case::padded([vec![0; 100], whole()].concat(), "not an npz")]
#[case::doubled([whole(), whole()].concat(), "where it should be")]
#[case::longer([whole(), vec![0]].concat(), "zip archive")]
#[case::no_members(container(&[]), "without arrays")]
fn other_files_are_refused(#[case] file: Vec<u8>, #[case] word: &str) {
    let error = refusal(&file, "a");
    assert!(error.contains(word), "{error}");
}

#[test]
fn truncated_files_are_refused() {
    let whole = whole();
    for length in 0..whole.len() {
        refusal(&whole[..length], "a");
    }
}

#[rstest]
fn a_flipped_bit_changes_no_value(#[values(false, true)] large: bool) {
    let whole = container(&two().map(|member| Member { large, ..member }));
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = read(&changed, "b") {
                assert_eq!(read, [263; 5000], "byte {at}");
            }
        }
    }
}

#[rstest]
fn padding_is_not_searched(#[values(0, b'P')] byte: u8) {
    let large = two().map(|member| Member { large: true, ..member });
    let whole = container(&large);
    let mut file = b"PK\x03\x04".to_vec();
    file.resize(50 << 20, byte);
    file.extend(&whole);
    let begin = Instant::now();
    refusal(&file, "a");
    assert!(begin.elapsed().as_secs() < 5);
}

#[test]
fn a_list_of_many_arrays_is_read() {
    let members: Vec<Member> =
        (0..60_000).map(|at| Member::stored(&at.to_string(), vector("|u1", &[[5]]))).collect();
    assert_eq!(read(&container(&members), "59999").unwrap(), [5]);
}
