//! Hand-written containers.

use std::{io::Cursor, time::Instant};

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
    assert!(
        error.len() < 1_700 && !error.contains(char::is_control),
        "{error}"
    );
    error
}

#[test]
fn members_are_stored_or_deflated_small_or_large() {
    for large in [false, true] {
        let members = two().map(|member| Member { large, ..member });
        let file = container(&members);
        assert_eq!(read(&file, "a").unwrap(), [1, 2, 3]);
        assert_eq!(read(&file, "b").unwrap(), [263; 5000]);
        let npz = Npz::new(Cursor::new(&file)).unwrap();
        assert!(npz.contains("a") && !npz.contains("c") && !npz.contains("a.npy"));
        assert!(refusal(&file, "c").contains("array c: it is missing"));
        if large {
            // As Python above 65,535 members: only the count is in the zip64 record.
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
    let mut header = Npz::new(Cursor::new(container(&two()))).unwrap();
    assert_eq!(header.header("b").unwrap().shape, [5000]);
    let members = ["a", "aa"].map(|name| Member::stored(name, vector("|u1", &[[9]])));
    assert_eq!(read(&container(&members), "aa").unwrap(), [9]);
}

#[test]
fn broken_members_are_refused() {
    let [a, b] = two();
    let file = |a: &Member, b: &Member| container(&[a.clone(), b.clone()]);
    let change = |change: fn(&mut Member)| {
        let mut changed = b.clone();
        change(&mut changed);
        file(&a, &changed)
    };
    for (file, word) in [
        (change(|b| b.flags = 1), "encrypted"),
        (change(|b| b.method = 14), "compression Lzma; numpy's"),
        (change(|b| b.method = 1), "compression Shrink; numpy's"),
        (change(|b| b.method = 77), "compression Unknown; numpy's"),
        (change(|b| b.method = 0), "bytes are there"),
        (change(|b| b.checksum ^= 1), "checksum"),
        (change(|b| b.size -= 2), "bytes of values"),
        (change(|b| b.size += 2), "bytes of values"),
        (change(|b| b.size = u64::from(u32::MAX) - 1), "cannot hold"),
        (
            change(|b| (b.size, b.large) = (1 << 50, true)),
            "cannot hold",
        ),
    ] {
        assert!(
            refusal(&file, "b").contains(word),
            "{}",
            refusal(&file, "b")
        );
        assert_eq!(read(&file, "a").unwrap(), [1, 2, 3], "{word}");
    }
    let twice = file(&a, &a);
    assert!(refusal(&twice, "a").contains("there twice"));
    let name = "\x1b[2J".repeat(10_000);
    let hostile = Member::stored(&name, Vec::new());
    let twice = container(&[a.clone(), hostile.clone(), hostile]);
    assert!(refusal(&twice, "a").contains("there twice"));
    // Local header and directory disagree.
    let whole = file(&a, &b);
    let second = whole
        .windows(4)
        .rposition(|bytes| bytes == b"PK\x03\x04")
        .unwrap();
    for at in [0, 8, 26, 28, 29, 30] {
        let mut changed = whole.clone();
        changed[second + at] ^= 0x40;
        match read(&changed, "b") {
            Ok(found) => assert_eq!(found, [263; 5000], "{at}"),
            Err(_) => drop(refusal(&changed, "b")),
        }
    }
}

#[test]
fn other_files_are_refused() {
    let whole = container(&two());
    let mut padded = vec![0; 100];
    padded.extend(&whole);
    let mut doubled = whole.clone();
    doubled.extend(&whole);
    let mut longer = whole.clone();
    longer.push(0);
    let empty = container(&[]);
    for (file, word) in [
        (&b""[..], "not an npz"),
        (b"PK", "not an npz"),
        (b"PK\x03\x04", "zip archive"),
        (b"\x93NUMPY\x01\x00", "not an npz"),
        (&padded, "not an npz"),
        (&doubled, "where it should be"),
        (&longer, "zip archive"),
        (&empty, "without arrays"),
    ] {
        assert!(refusal(file, "a").contains(word), "{}", refusal(file, "a"));
    }
    for length in 0..whole.len() {
        refusal(&whole[..length], "a");
    }
    for large in [false, true] {
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
}

#[test]
fn padding_is_not_searched() {
    let large = two().map(|member| Member {
        large: true,
        ..member
    });
    let whole = container(&large);
    for byte in [0, b'P'] {
        let mut file = b"PK\x03\x04".to_vec();
        file.resize(50 << 20, byte);
        file.extend(&whole);
        let begin = Instant::now();
        refusal(&file, "a");
        assert!(begin.elapsed().as_secs() < 5);
    }
}

#[test]
fn a_list_of_many_arrays_is_read() {
    let members: Vec<Member> = (0..60_000)
        .map(|at| Member::stored(&at.to_string(), vector("|u1", &[[5]])))
        .collect();
    assert_eq!(read(&container(&members), "59999").unwrap(), [5]);
}
