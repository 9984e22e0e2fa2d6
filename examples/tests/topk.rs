//! The program `topk`, as a user runs it.

mod common;

use std::fs;

use common::{Folder, fails};
use npyz::{AutoSerialize, Deserialize, WriterBuilder};
use rstest::{fixture, rstest};

#[fixture]
fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_topk"))
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

#[rstest]
fn chunks_and_devices_give_what_the_whole_gives(
    folder: Folder,
    #[values("2**28", "10000", "999", "40")] chunk: &str,
    #[values("0", "0,0", "0,0,0,0,0,0")] devices: &str,
) {
    folder.runs("generate --length 10**4 --dist uniform --seed 3 --output x.npy");
    let bytes = fs::read(folder.path.join("x.npy")).unwrap();
    let x: Vec<f32> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    let mut order: Vec<i64> = (0..10_000).collect();
    order.sort_by(|&i, &j| x[i as usize].total_cmp(&x[j as usize]).then(i.cmp(&j)));
    let values = |places: &[i64]| places.iter().map(|&i| x[i as usize]).collect::<Vec<f32>>();

    let common =
        format!("--input x.npy --k 100 --backend flex --devices {devices} --chunk {chunk}");
    folder.runs(&format!("{common} --smallest --sorted --output least.npz"));
    let least = &order[..100];
    assert_eq!(read::<f32>(&folder, "least.npz"), (values(least), least.to_vec()));

    folder.runs(&format!("{common} --output greatest.npz"));
    let mut greatest = order[9900..].to_vec();
    greatest.sort_unstable();
    let expected = (values(&greatest), greatest);
    assert_eq!(read::<f32>(&folder, "greatest.npz"), expected);
}

#[rstest]
fn short_vectors_are_generated(folder: Folder) {
    folder.runs("generate --length 5 --output five.npy");
}

/// One CubeCL device, listed twice.
#[cfg(feature = "cpu")]
#[rstest]
fn devices_take_pieces_in_turn(folder: Folder) {
    folder.runs("generate --length 10**4 --dist normal --seed 5 --output x.npy");
    let common = "--input x.npy --k 100 --chunk 999";
    folder.runs(&format!("{common} --backend flex --output flex.npz"));
    folder.runs(&format!("{common} --backend cpu --devices 0,0 --output cpu.npz"));
    let (flex, cpu) = ("flex.npz", "cpu.npz");
    assert_eq!(read::<f32>(&folder, cpu), read::<f32>(&folder, flex));
}

#[rstest]
fn every_dtype_keeps_its_bits(folder: Folder) {
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

#[rstest]
fn nothing_may_be_selected(folder: Folder) {
    write::<f32>(&folder, "x.npy", &[0], &[]);
    folder.runs("--input x.npy --k 0 --backend flex --output none.npz");
    assert_eq!(read::<f32>(&folder, "none.npz"), (vec![], vec![]));
}

/// Has three elements in `x.npy`.
#[fixture]
fn three(folder: Folder) -> Folder {
    write(&folder, "x.npy", &[3], &[1.0f32, 2.0, 3.0]);
    folder
}

/// Also has files that are no vectors.
#[fixture]
fn broken(#[from(three)] folder: Folder) -> Folder {
    write(&folder, "matrix.npy", &[1, 3], &[1.0f32, 2.0, 3.0]);
    write(&folder, "bytes.npy", &[3], &[1u8, 2, 3]);
    fs::write(folder.path.join("text.npy"), "no numbers\n").unwrap();
    fs::write(folder.path.join("empty.npy"), "").unwrap();
    let whole = fs::read(folder.path.join("x.npy")).unwrap();
    fs::write(folder.path.join("short.npy"), &whole[..whole.len() - 1]).unwrap();
    for (name, brackets) in [("nested.npy", 65_000), ("hangs.npy", 30)] {
        let brackets = "[".repeat(brackets);
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {brackets}");
        save(&folder, name, &header, &[]);
    }
    save(&folder, "objects.npy", &header("|O", "(3,)"), &[0; 24]);
    save(&folder, "scalar.npy", &header("<f4", "()"), &[0; 4]);
    save(&folder, "huge.npy", &header("<f4", "(2305843009213693952,)"), &[0; 4]);
    folder
}

#[rstest]
#[case("nowhere.npy", "nowhere.npy")]
#[case("text.npy", "not an npy array")]
#[case("empty.npy", "empty.npy")]
#[case("nested.npy", "header")]
#[case("hangs.npy", "header")]
#[case("matrix.npy", "2 dimensions, expected one; numpy's a.ravel()")]
#[case("scalar.npy", "0 dimensions, expected one; numpy's a.ravel()")]
#[case("bytes.npy", "dtype uint8")]
#[case("objects.npy", "pickled")]
#[case("huge.npy", "4 bytes")]
#[case("short.npy", "11 bytes")]
fn broken_files_are_one_line(broken: Folder, #[case] input: &str, #[case] word: &str) {
    broken.refuses(&format!("--input {input} --k 1 --backend flex"), word);
}

#[rstest]
#[case("--input x.npy --k 4 --backend flex", "k = 4")]
#[case("--input x.npy --k 1 --backend flex --devices 0,7", "7")]
#[case("--input x.npy --k 1 --backend flex --chunk 0", "'0'")]
#[case("--input x.npy --k 2**64 --backend flex", "too large")]
#[case("--k 1 --backend flex", "--input <FILE>")]
#[case("generate --length many", "many is not a count")]
#[case("generate --length 2**62", "no file holds")]
fn wrong_input_is_one_line(
    #[from(three)] folder: Folder,
    #[case] arguments: &str,
    #[case] word: &str,
) {
    folder.refuses(arguments, word);
}

/// A header in NumPy's format.
fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n")
}

fn save(folder: &Folder, name: &str, header: &str, elements: &[u8]) {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    fs::write(folder.path.join(name), bytes).unwrap();
}

#[rstest]
fn vectors_in_the_other_byte_order_are_converted(folder: Folder) {
    let best = "--k 2 --sorted --backend flex --chunk 3 --output best.npz";
    let floats = [1.0f64, 9.5, -5.0, 3.0, 2.0];
    let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_be_bytes()).collect();
    save(&folder, "f8.npy", &header(">f8", "(5,)"), &bytes);
    folder.runs(&format!("--input f8.npy {best}"));
    let expected = (vec![9.5, 3.0], vec![1, 3]);
    assert_eq!(read::<f64>(&folder, "best.npz"), expected);
    let integers = [1i32, i32::MAX, -5, 3, 2];
    let bytes: Vec<u8> = integers.iter().flat_map(|x| x.to_be_bytes()).collect();
    save(&folder, "i4.npy", &header(">i4", "(5,)"), &bytes);
    folder.runs(&format!("--input i4.npy {best}"));
    let expected = (vec![i32::MAX, 3], vec![1, 3]);
    assert_eq!(read::<i32>(&folder, "best.npz"), expected);
}

const COMMON: &str = "--input x.npy --k 2 --backend flex";

#[rstest]
fn a_chunk_may_be_greater_than_the_vector(#[from(three)] folder: Folder) {
    folder.runs(&format!("{COMMON} --chunk 2**60 --output best.npz"));
    let expected = (vec![2.0, 3.0], vec![1, 2]);
    assert_eq!(read::<f32>(&folder, "best.npz"), expected);
    let mut command = folder.command(&format!("{COMMON} --chunk 2**60 --output best.npz"));
    command.env("SPARSEK_MAX_MEMORY", "11");
    fails(&command.output().unwrap(), "SPARSEK_MAX_MEMORY");
    assert_eq!(read::<f32>(&folder, "best.npz"), expected);
}

/// Has 100 elements in `x.npy`.
#[fixture]
fn hundred(folder: Folder) -> Folder {
    folder.runs("generate --length 100 --output x.npy");
    folder
}

#[rstest]
fn the_output_is_saved_when_nobody_reads_what_is_printed(#[from(hundred)] folder: Folder) {
    folder.runs(&format!("{COMMON} --output read.npz"));
    let whole = fs::read(folder.path.join("read.npz")).unwrap();
    let output = folder.unread(&format!("{COMMON} --output unread.npz"));
    assert!(output.status.success() && output.stderr.is_empty());
    let status = folder.unheard(&format!("{COMMON} --output unheard.npz"));
    assert_eq!(status, Some(0));
    for name in ["unread.npz", "unheard.npz"] {
        assert_eq!(fs::read(folder.path.join(name)).unwrap(), whole);
    }
    let output = folder.unread("generate --length 100 --output y.npy");
    assert!(output.status.success() && output.stderr.is_empty());
    let [x, y] = ["x.npy", "y.npy"].map(|name| fs::read(folder.path.join(name)).unwrap());
    assert_eq!(x, y);
}

#[rstest]
fn help_needs_no_reader(
    folder: Folder,
    #[values("--help", "--version", "generate --help")] arguments: &str,
) {
    let output = folder.unread(arguments);
    assert!(output.status.success() && output.stderr.is_empty());
}

#[rstest]
fn an_unheard_error_has_its_status(folder: Folder) {
    assert_eq!(folder.unheard("--nonsense"), Some(2));
}

#[cfg(target_os = "linux")]
#[rstest]
fn a_full_disk_is_one_line(folder: Folder) {
    folder.runs("generate --length 10**5 --output x.npy");
    let output = folder.run_on_a_full_disk(&format!("{COMMON} --output best.npz"));
    fails(&output, "standard output: ");
    assert_eq!(read::<f32>(&folder, "best.npz").1.len(), 2);
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::selection(&format!("{COMMON} --output /dev/full"))]
#[case::long_vector("generate --length 10**5 --output /dev/full")]
#[case::short_vector("generate --length 1 --output /dev/full")]
fn a_full_disk_is_named(folder: Folder, #[case] arguments: &str) {
    folder.runs("generate --length 10**5 --output x.npy");
    fails(&folder.run(arguments), "/dev/full: No space left");
}

/// A file-size limit acts as a full disk.
#[cfg(target_os = "linux")]
#[rstest]
fn a_disk_that_fills_up_is_one_line_and_leaves_the_earlier_output(
    folder: Folder,
    #[values(0, 1, 8, 30, 39, 40, 41, 79, 116, 117)] blocks: u32,
) {
    folder.runs("generate --length 10**4 --output x.npy");
    let earlier = b"earlier";
    fs::write(folder.path.join("best.npz"), earlier).unwrap();
    let line = "--input x.npy --k 5000 --backend flex --output best.npz";
    let program = env!("CARGO_BIN_EXE_topk");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} {line}");
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &script]).current_dir(&folder.path).output();
    fails(&output.unwrap(), "error: best.npz: ");
    assert_eq!(fs::read(folder.path.join("best.npz")).unwrap(), earlier);
    assert_eq!(folder.names(), ["best.npz", "x.npy"]);
    folder.runs(line);
    assert_eq!(read::<f32>(&folder, "best.npz").1.len(), 5000);
}

#[rstest]
#[case::no_folder("no/where.npz", "no/where.npz: there is no folder no")]
#[case::file_as_folder("x.npy/best.npz", "x.npy is not a folder")]
#[case::folder(".", "a folder")]
fn an_output_that_cannot_be_written_is_found_first(
    #[from(hundred)] folder: Folder,
    #[values(COMMON, "generate --length 2**60")] arguments: &str,
    #[case] output: &str,
    #[case] word: &str,
) {
    let output = folder.run(&format!("{arguments} --output {output}"));
    fails(&output, word);
    assert!(output.stdout.is_empty());
    assert_eq!(folder.names(), ["x.npy"]);
}

#[rstest]
#[case::same("x.npy")]
#[case::same("./x.npy")]
#[case::hard_link("hard.npz")]
#[cfg_attr(unix, case::symbolic_link("soft.npz"))]
fn no_input_is_overwritten(#[from(hundred)] folder: Folder, #[case] output: &str) {
    let path = |name: &str| folder.path.join(name);
    let before = fs::read(path("x.npy")).unwrap();
    fs::hard_link(path("x.npy"), path("hard.npz")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("x.npy", path("soft.npz")).unwrap();
    let output = folder.run(&format!("{COMMON} --output {output}"));
    fails(&output, "would overwrite");
    assert_eq!(fs::read(path("x.npy")).unwrap(), before);
}

#[cfg(unix)]
#[rstest]
fn pipes_and_devices_are_no_inputs(
    folder: Folder,
    #[values("pipe", "/dev/zero", ".")] input: &str,
) {
    let made = std::process::Command::new("mkfifo").arg(folder.path.join("pipe")).status();
    assert!(made.unwrap().success());
    let arguments = COMMON.replace("x.npy", input);
    folder.refuses(&arguments, "not a regular file");
}

/// Archives need to seek.
#[cfg(target_os = "linux")]
#[rstest]
fn pipes_are_no_outputs(#[from(hundred)] folder: Folder) {
    let output = folder.run(&format!("{COMMON} --output /dev/stdout"));
    fails(&output, "/dev/stdout: ");
    assert!(output.stdout.is_empty());
}

// Each word stands for `WORD`.
#[rstest]
#[case::k("--input x.npy --output bad.npz --k WORDx")]
#[case::input("--input WORD --output bad.npz --k 1")]
#[case::chunk("--input x.npy --output bad.npz --k 1 --chunk 2**WORD")]
#[case::devices("--input x.npy --output bad.npz --k 1 --devices 0,WORDx")]
#[case::backend("--input x.npy --output bad.npz --k 1 --backend WORD")]
#[case::command("WORD --input x.npy")]
#[case::length("generate --length WORDx --output bad.npy")]
fn words_of_the_command_line_are_cut_and_escaped(
    folder: Folder,
    #[values("3\n\nfour", "\u{1b}[2J", &"9".repeat(100_000))] word: &str,
    #[case] arguments: &str,
) {
    let arguments = arguments.replace("WORD", word);
    fails(&folder.command(&arguments).output().unwrap(), "error: ");
    assert!(folder.names().is_empty());
}

/// Neither a foreign file nor `off` changes results.
#[cfg(all(feature = "cache", feature = "cpu"))]
#[rstest]
fn a_cache_that_cannot_be_used_is_left_alone(folder: Folder) {
    folder.runs("generate --length 1000 --output x.npy");
    let run = |cache: &str| {
        let mut command = folder.command("--input x.npy --k 9 --backend cpu --output best.npz");
        let output = command.env("SPARSEK_CACHE", cache).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{cache}: {message}");
        (read::<f32>(&folder, "best.npz"), message)
    };
    let (expected, message) = run("off");
    assert_eq!(message, "");
    assert_eq!(folder.names(), ["best.npz", "x.npy"]);

    let kept = folder.path.join("kept");
    let letter = kept.join("sparsek.db");
    fs::create_dir(&kept).unwrap();
    fs::write(&letter, "a letter to my aunt").unwrap();
    let (found, message) = run("kept");
    assert_eq!(found, expected);
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.contains("sparsek.db is ignored"), "{message}");
    assert_eq!(fs::read(&letter).unwrap(), b"a letter to my aunt");

    let (found, message) = run("made/anew");
    assert_eq!((found, message.as_str()), (expected, ""));
    assert!(folder.path.join("made/anew").is_dir());
}

#[rstest]
#[case::select("--help", "Selection Output Device")]
#[case::generate("generate --help", "Vector Output")]
fn help_has_sections_and_examples(folder: Folder, #[case] arguments: &str, #[case] sections: &str) {
    common::help(&folder, arguments, sections);
}
