//! The program `topk`, as a user runs it.

mod folder;

use std::fs;

use folder::Folder;
use npyz::{AutoSerialize, Deserialize, WriterBuilder};

fn folder(name: &str) -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_topk"), name)
}

fn write<T: AutoSerialize + Copy>(folder: &Folder, name: &str, shape: &[u64], elements: &[T]) {
    let mut file = fs::File::create(folder.path.join(name)).unwrap();
    let options = npyz::WriteOptions::new().default_dtype().writer(&mut file);
    let mut array = options.shape(shape).begin_nd().unwrap();
    array.extend(elements.iter().copied()).unwrap();
    array.finish().unwrap();
}

fn read<T: Deserialize>(folder: &Folder, name: &str) -> (Vec<T>, Vec<i64>) {
    let (values, indices) = (folder.array(name, "values"), folder.array(name, "indices"));
    assert_eq!((values.0.len(), indices.0.len()), (1, 1));
    (values.1, indices.1)
}

#[test]
fn chunks_and_devices_give_what_the_whole_gives() {
    let folder = folder("chunks");
    folder.runs("generate --length 10**4 --dist uniform --seed 3 --output x.npy");
    folder.runs("generate --length 5 --output five.npy");
    let bytes = fs::read(folder.path.join("x.npy")).unwrap();
    let x: Vec<f32> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    let mut order: Vec<i64> = (0..10_000).collect();
    order.sort_by(|&i, &j| x[i as usize].total_cmp(&x[j as usize]).then(i.cmp(&j)));
    let values = |places: &[i64]| places.iter().map(|&i| x[i as usize]).collect::<Vec<f32>>();

    for chunk in ["2**28", "10000", "999", "40"] {
        for devices in ["0", "0,0", "0,0,0,0,0,0"] {
            let common =
                format!("--input x.npy --k 100 --backend flex --devices {devices} --chunk {chunk}");
            folder.runs(&format!("{common} --smallest --sorted --output least.npz"));
            let least = &order[..100];
            assert_eq!(
                read::<f32>(&folder, "least.npz"),
                (values(least), least.to_vec())
            );

            folder.runs(&format!("{common} --output greatest.npz"));
            let mut greatest = order[9900..].to_vec();
            greatest.sort_unstable();
            let expected = (values(&greatest), greatest);
            assert_eq!(read::<f32>(&folder, "greatest.npz"), expected);
        }
    }
}

/// What several devices of CubeCL's take in turn, here one of them twice.
#[test]
#[cfg(feature = "cpu")]
fn devices_take_pieces_in_turn() {
    let folder = folder("turns");
    folder.runs("generate --length 10**4 --dist normal --seed 5 --output x.npy");
    let common = "--input x.npy --k 100 --chunk 999";
    folder.runs(&format!("{common} --backend flex --output flex.npz"));
    folder.runs(&format!(
        "{common} --backend cpu --devices 0,0 --output cpu.npz"
    ));
    let (flex, cpu) = ("flex.npz", "cpu.npz");
    assert_eq!(read::<f32>(&folder, cpu), read::<f32>(&folder, flex));
}

#[test]
fn every_dtype_keeps_its_bits() {
    let folder = folder("dtypes");
    let best = "--k 2 --sorted --backend flex --chunk 3";
    macro_rules! check {
        ($name:expr, $type:ty, $elements:expr, $values:expr) => {{
            let elements: [$type; 5] = $elements;
            write(&folder, "x.npy", &[5], &elements);
            folder.runs(&format!("--input x.npy {best} --output {}.npz", $name));
            let (values, indices) = read::<$type>(&folder, &format!("{}.npz", $name));
            assert_eq!((values, indices), ($values.to_vec(), vec![1, 3]));
        }};
    }
    check!("f32", f32, [1.0, 3.0, -5.0, 3.0, 3.0], [3.0f32, 3.0]);
    check!("f64", f64, [1.0, 1e300, -5.0, 3.5, 3.0], [1e300, 3.5]);
    check!("i32", i32, [1, i32::MAX, -5, 3, 2], [i32::MAX, 3]);
    check!("i64", i64, [1, i64::MAX, i64::MIN, 3, 2], [i64::MAX, 3]);
    check!("u32", u32, [1, u32::MAX, 0, 3, 2], [u32::MAX, 3]);
    let halves = [1.0, 9.5, -5.0, 3.0, 2.0].map(half::f16::from_f32);
    let expected = [9.5, 3.0].map(half::f16::from_f32);
    check!("f16", half::f16, halves, expected);
}

#[test]
fn nothing_may_be_selected() {
    let folder = folder("nothing");
    write::<f32>(&folder, "x.npy", &[0], &[]);
    folder.runs("--input x.npy --k 0 --backend flex --output none.npz");
    assert_eq!(read::<f32>(&folder, "none.npz"), (vec![], vec![]));
}

#[test]
fn wrong_input_is_one_line() {
    let folder = folder("wrong");
    write(&folder, "x.npy", &[3], &[1.0f32, 2.0, 3.0]);
    write(&folder, "matrix.npy", &[1, 3], &[1.0f32, 2.0, 3.0]);
    write(&folder, "bytes.npy", &[3], &[1u8, 2, 3]);
    fs::write(folder.path.join("text.npy"), "no numbers\n").unwrap();
    fs::write(folder.path.join("empty.npy"), "").unwrap();
    let whole = fs::read(folder.path.join("x.npy")).unwrap();
    fs::write(folder.path.join("short.npy"), &whole[..whole.len() - 1]).unwrap();
    let mut nested = b"\x93NUMPY\x01\x00\xff\xff".to_vec();
    nested.extend([b'('; 65_535]);
    fs::write(folder.path.join("nested.npy"), nested).unwrap();

    for (input, word) in [
        ("nowhere.npy", "nowhere.npy"),
        ("text.npy", "not an npy file"),
        ("empty.npy", "empty.npy"),
        ("nested.npy", "header"),
        ("matrix.npy", "dimensions"),
        ("bytes.npy", "u1"),
        ("short.npy", "11 bytes"),
    ] {
        folder.refuses(&format!("--input {input} --k 1 --backend flex"), word);
    }
    folder.refuses("--input x.npy --k 4 --backend flex", "k = 4");
    folder.refuses("--input x.npy --k 1 --backend flex --devices 0,7", "7");
    let output = folder.run("--input x.npy --k 1 --backend flex --output no/where.npz");
    assert_eq!(output.status.code(), Some(2));
}
