//! The program `knn`, as a user runs it.

mod common;

use std::{
    fs::{self, File},
    io::Write,
};

use burn::tensor::Device;
use common::{Folder, fails};
use npyz::zip::{CompressionMethod, ZipWriter, write::FileOptions};
use rstest::{fixture, rstest};
use sparsek::{distance::Metric, sparse::Csr};

#[fixture]
fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_knn"))
}

/// An array in NumPy's format.
fn npy(descr: &str, shape: &str, bytes: Vec<u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(bytes);
    array
}

fn integers(values: &[i64]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy("<i8", &format!("({},)", values.len()), bytes)
}

/// Writes dense rows as scipy's `save_npz` writes CSR.
fn save(folder: &Folder, name: &str, cols: usize, rows: &[Vec<f32>]) {
    let (mut indptr, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        assert_eq!(row.len(), cols);
        for (column, &value) in row.iter().enumerate().filter(|&(_, &value)| value != 0.0) {
            indices.push(column as i64);
            data.extend(value.to_le_bytes());
        }
        indptr.push(indices.len() as i64);
    }
    let mut zip = ZipWriter::new(File::create(folder.path.join(name)).unwrap());
    let options = FileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in [
        ("indptr", integers(&indptr)),
        ("format", npy("|S3", "()", b"csr".to_vec())),
        ("shape", integers(&[rows.len() as i64, cols as i64])),
        ("data", npy("<f4", &format!("({},)", indices.len()), data)),
        ("indices", integers(&indices)),
    ] {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap();
}

/// Small integers, 2/3 zeros: exact distances with many ties.
fn matrix(rows: usize, cols: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match (state >> 33) % 9 {
            value @ 0..3 => value as f32 + 1.0,
            _ => 0.0,
        }
    };
    (0..rows).map(|_| (0..cols).map(|_| draw()).collect()).collect()
}

fn manhattan(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Distances to all other rows with their indices, nearest first.
fn sorted(query: &[f32], index: &[Vec<f32>], own: Option<usize>) -> Vec<(f32, i64)> {
    let each = index.iter().enumerate().filter(|&(j, _)| Some(j) != own);
    let each = each.map(|(j, row)| (manhattan(query, row), j as i64));
    let mut all: Vec<_> = each.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

fn index() -> Vec<Vec<f32>> {
    matrix(50, 12, 1)
}

fn query() -> Vec<Vec<f32>> {
    matrix(7, 12, 2)
}

/// Has the index in `x.npz` and the queries in `y.npz`, and both as `.npy`.
#[fixture]
fn pair(folder: Folder) -> Folder {
    for (name, rows) in [("x", index()), ("y", query())] {
        save(&folder, &format!("{name}.npz"), 12, &rows);
        let shape = format!("({}, 12)", rows.len());
        let bytes = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        let array = npy("<f4", &shape, bytes);
        fs::write(folder.path.join(format!("{name}.npy")), array).unwrap();
    }
    folder
}

/// Has 5 rows in `x.npz`.
#[fixture]
fn five(folder: Folder) -> Folder {
    save(&folder, "x.npz", 12, &matrix(5, 12, 1));
    folder
}

#[rstest]
fn the_nearest_in_any_batches(
    #[from(pair)] folder: Folder,
    #[values("", "--query-batch 1", "--query-batch 8", "--query-batch 1000")] batch: &str,
    #[values(0, 1, 6, 49)] k: usize,
    #[values("", "--query y.npz")] given: &str,
    #[values("x.npz", "x.npy", "x.npz --devices 0,0,0")] data: &str,
) {
    let (index, query) = (index(), query());
    let asked = if given.is_empty() { &index } else { &query };
    let common = format!("--data {data} --metric manhattan --k {k} --backend flex {batch}");
    let printed = folder.runs(&format!("{common} {given} --output knn.npz"));
    assert!(printed.contains("by manhattan on flex"), "{printed}");
    assert!(printed.contains("\nmemory: peak resident set"), "{printed}");
    let (shape, distances) = folder.array::<f32>("knn.npz", "distances");
    assert_eq!(shape, [asked.len() as u64, k as u64]);
    let (shape, indices) = folder.array::<i64>("knn.npz", "indices");
    assert_eq!(shape, [asked.len() as u64, k as u64]);
    for (i, row) in asked.iter().enumerate() {
        let expected = &sorted(row, &index, given.is_empty().then_some(i))[..k];
        let found = i * k..(i + 1) * k;
        let found = distances[found.clone()].iter().zip(&indices[found]);
        let found: Vec<_> = found.map(|(&distance, &at)| (distance, at)).collect();
        assert_eq!(found, expected, "row {i}");
    }
}

#[rstest]
fn all_within_a_radius_in_any_batches(
    #[from(pair)] folder: Folder,
    #[values("", "--query-batch 1", "--query-batch 8")] batch: &str,
    #[values("-1", "0", "9", "inf")] radius: &str,
    #[values("", "--query y.npz")] given: &str,
    #[values("x.npz", "x.npy", "x.npz --devices 0,0,0")] data: &str,
) {
    let (index, query) = (index(), query());
    let asked = if given.is_empty() { &index } else { &query };
    let common = format!("--data {data} --metric manhattan --radius {radius}");
    let limit: f32 = radius.parse().unwrap();
    folder.runs(&format!("{common} --backend flex {batch} {given} --output near.npz"));
    let (_, indptr) = folder.array::<i64>("near.npz", "indptr");
    let (_, indices) = folder.array::<i64>("near.npz", "indices");
    let (_, distances) = folder.array::<f32>("near.npz", "data");
    let (_, shape) = folder.array::<i64>("near.npz", "shape");
    assert_eq!(shape, [asked.len() as i64, index.len() as i64]);
    // Reads as scipy's load_npz.
    let found = Csr::from_npz(folder.path.join("near.npz"), &Device::flex()).unwrap();
    assert_eq!((found.rows(), found.cols()), (asked.len(), index.len()));
    assert_eq!(found.nnz(), indices.len());
    assert_eq!((indptr[0], indptr.len()), (0, asked.len() + 1));
    assert_eq!(indptr[asked.len()] as usize, indices.len());
    for (i, row) in asked.iter().enumerate() {
        let mut expected = sorted(row, &index, given.is_empty().then_some(i));
        expected.retain(|&(distance, _)| distance <= limit);
        expected.sort_by_key(|&(_, at)| at);
        let found = indptr[i] as usize..indptr[i + 1] as usize;
        let found = distances[found.clone()].iter().zip(&indices[found]);
        let found: Vec<_> = found.map(|(&distance, &at)| (distance, at)).collect();
        assert_eq!(found, expected, "row {i}");
    }
}

#[rstest]
fn dense_rows_are_searched_as_they_are(
    #[from(pair)] folder: Folder,
    #[values("", "--devices 0,0")] devices: &str,
    #[values("", "--query y.npy")] given: &str,
) {
    let (index, query) = (index(), query());
    let asked = if given.is_empty() { &index } else { &query };
    let common = "--data x.npy --metric euclidean --k 4 --backend flex";
    folder.runs(&format!("{common} {devices} {given} --output knn.npz"));
    let (_, distances) = folder.array::<f32>("knn.npz", "distances");
    let (_, indices) = folder.array::<i64>("knn.npz", "indices");
    for (i, row) in asked.iter().enumerate() {
        let square =
            |other: &[f32]| -> f32 { row.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum() };
        let mut expected: Vec<(f32, i64)> =
            index.iter().enumerate().map(|(at, row)| (square(row), at as i64)).collect();
        expected.retain(|&(_, at)| !given.is_empty() || at != i as i64);
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (slot, &(square, at)) in expected[..4].iter().enumerate() {
            let found = (distances[4 * i + slot], indices[4 * i + slot]);
            assert_eq!(found, (square.sqrt(), at), "row {i}, neighbor {slot}");
        }
    }
}

#[rstest]
fn every_metric_by_name(folder: Folder) {
    save(&folder, "x.npz", 12, &matrix(20, 12, 3));
    for metric in Metric::ALL {
        let printed = folder
            .runs(&format!("--data x.npz --metric {metric} --k 3 --backend flex --output knn.npz"));
        assert!(printed.contains(&format!("by {metric} on")), "{printed}");
        assert_eq!(folder.array::<i64>("knn.npz", "indices").0, [20, 3]);
    }
}

/// The same rows in another format and under another name give the same file.
#[rstest]
fn matrix_market_files_are_read(#[from(pair)] folder: Folder) {
    let mut text = "%%MatrixMarket matrix coordinate integer general\n".to_string();
    let rows = index();
    let entries: Vec<(usize, usize, f32)> = (rows.iter().enumerate())
        .flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &x)| (i + 1, j + 1, x)))
        .filter(|entry| entry.2 != 0.0)
        .collect();
    text.push_str(&format!("{} 12 {}\n", rows.len(), entries.len()));
    for (i, j, x) in entries.iter().rev() {
        text.push_str(&format!("{i} {j} {x}\n"));
    }
    fs::write(folder.path.join("x.mtx"), text).unwrap();
    let common = "--metric cityblock --backend flex --k 3 --query y.npz";
    let printed = folder.runs(&format!("--data x.mtx {common} --output market.npz"));
    assert!(printed.contains("by manhattan on flex"), "{printed}");
    folder.runs(&format!("--data x.npz {common} --output scipy.npz"));
    let [market, scipy] =
        ["market.npz", "scipy.npz"].map(|name| fs::read(folder.path.join(name)).unwrap());
    assert_eq!(market, scipy);
    fs::write(folder.path.join("bad.mtx"), "%%MatrixMarket matrix array real general\n").unwrap();
    folder.refuses(&format!("--data bad.mtx {common}"), "bad.mtx: line 1: the format is");
}

/// A group of AnnData's file gives what the same matrix in an npz file gives.
#[rstest]
fn anndata_files_are_read(folder: Folder) {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/hdf5");
    let common = "--metric manhattan --k 2 --backend flex";
    for (key, expected) in
        [("", "X"), ("--key layers/counts", "counts"), ("--key obsp/graph", "graph")]
    {
        folder.runs(&format!("--data {fixtures}/gzip.h5ad {key} {common} --output cells.npz"));
        folder.runs(&format!("--data {fixtures}/{expected}.npz {common} --output scipy.npz"));
        let [cells, scipy] =
            ["cells.npz", "scipy.npz"].map(|name| fs::read(folder.path.join(name)).unwrap());
        assert_eq!(cells, scipy, "{key}");
    }
    let file = format!("--data {fixtures}/gzip.h5ad");
    folder.refuses(&format!("{file} --key layers/dense {common}"), "layers/dense: a dense");
    folder.refuses(&format!("{file} --key raw/X {common}"), "group raw/X");
}

#[rstest]
fn there_may_be_nothing_to_find(folder: Folder) {
    save(&folder, "none.npz", 3, &[]);
    save(&folder, "one.npz", 3, &matrix(1, 3, 1));
    let common = "--metric cosine --backend flex --output knn.npz";
    folder.runs(&format!("--data one.npz --query none.npz --k 1 {common}"));
    assert_eq!(folder.array::<f32>("knn.npz", "distances"), (vec![0, 1], vec![]));
    folder.runs(&format!("--data none.npz --radius 1 {common}"));
    assert_eq!(folder.array::<i64>("knn.npz", "indptr"), (vec![1], vec![0]));
}

const MANHATTAN: &str = "--metric manhattan --backend flex";

#[rstest]
fn broken_files_are_one_line(
    #[from(five)] folder: Folder,
    #[values("nowhere.npz", "text.npz", "empty.npz", "short.npz")] file: &str,
) {
    fs::write(folder.path.join("text.npz"), "no matrix\n").unwrap();
    fs::write(folder.path.join("empty.npz"), "").unwrap();
    let whole = fs::read(folder.path.join("x.npz")).unwrap();
    fs::write(folder.path.join("short.npz"), &whole[..whole.len() / 2]).unwrap();
    folder.refuses(&format!("--data {file} --k 1 {MANHATTAN}"), file);
    folder.refuses(&format!("--data x.npz --query {file} --k 1 {MANHATTAN}"), file);
}

#[rstest]
#[case::own_rows("", 5)]
#[case::queries("--query x.npz", 6)]
#[case::largest("", usize::MAX)]
fn more_neighbors_than_rows_are_refused(
    #[from(five)] folder: Folder,
    #[case] query: &str,
    #[case] k: usize,
) {
    let words = format!("x.npz: {k} neighbors of each row, but the index has 5 rows");
    folder.refuses(&format!("--data x.npz {query} --k {k} {MANHATTAN}"), &words);
}

#[rstest]
fn unknown_metrics_are_one_line(
    #[from(five)] folder: Folder,
    #[values("l3", "minkowski", "minkowski:0")] metric: &str,
) {
    let unknown = format!("--data x.npz --k 1 --backend flex --metric {metric}");
    folder.refuses(&unknown, metric);
    folder.refuses(&unknown, "manhattan, canberra");
    folder.refuses(&unknown, "l1, cityblock");
}

#[rstest]
#[case::columns("--query narrow.npz --k 1", "narrow.npz: the matrices have 11 and 12 columns")]
#[case::neither("", "--k")]
#[case::k("--k one", "'one'")]
#[case::radius("--radius nan", "'nan'")]
#[case::batch("--k 1 --query-batch 0", "'0'")]
#[case::both("--k 1 --radius 2", "--radius")]
#[case::device("--k 1 --devices 0,7", "no device 7; there are 1")]
#[case::vector("--k 1 --query vector.npy", "vector.npy: an array of 1 dimensions instead of 2")]
fn wrong_input_is_one_line(
    #[from(five)] folder: Folder,
    #[case] arguments: &str,
    #[case] word: &str,
) {
    save(&folder, "narrow.npz", 11, &matrix(5, 11, 1));
    let vector = npy("<f4", "(2,)", vec![0; 8]);
    fs::write(folder.path.join("vector.npy"), vector).unwrap();
    folder.refuses(&format!("--data x.npz {arguments} {MANHATTAN}"), word);
}

#[rstest]
fn unknown_backends_are_one_line(#[from(five)] folder: Folder) {
    folder.refuses("--data x.npz --k 1 --metric dot --backend abacus", "flex");
}

const COMMON: &str = "--data x.npz --metric manhattan --backend flex --k 2";

#[rstest]
fn the_output_is_saved_when_nobody_reads_what_is_printed(#[from(five)] folder: Folder) {
    folder.runs(&format!("{COMMON} --output read.npz"));
    let whole = fs::read(folder.path.join("read.npz")).unwrap();
    let output = folder.unread(&format!("{COMMON} --output unread.npz"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.is_empty(), "{message}");
    assert_eq!(fs::read(folder.path.join("unread.npz")).unwrap(), whole);
    let status = folder.unheard(&format!("{COMMON} --output unheard.npz"));
    assert_eq!(status, Some(0));
    assert_eq!(fs::read(folder.path.join("unheard.npz")).unwrap(), whole);
}

#[rstest]
fn help_needs_no_reader(folder: Folder, #[values("--help", "--version")] arguments: &str) {
    let output = folder.unread(arguments);
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(folder.unheard(arguments), Some(0));
}

#[rstest]
fn an_unheard_error_has_its_status(folder: Folder) {
    assert_eq!(folder.unheard("--nonsense"), Some(2));
}

#[cfg(target_os = "linux")]
#[rstest]
fn a_full_disk_is_one_line(#[from(five)] folder: Folder) {
    let output = folder.run_on_a_full_disk(&format!("{COMMON} --output knn.npz"));
    fails(&output, "standard output: ");
    assert_eq!(folder.array::<i64>("knn.npz", "indices").0, [5, 2]);
    fails(&folder.run_on_a_full_disk("--help"), "standard output: ");
    let output = folder.run(&format!("{COMMON} --output /dev/full"));
    fails(&output, "/dev/full: No space left");
}

#[rstest]
#[case::no_folder("no/where.npz", "no/where.npz: there is no folder no")]
#[case::file_as_folder("x.npz/knn.npz", "x.npz is not a folder")]
#[case::folder("dir.npz", "dir.npz: a folder")]
#[cfg_attr(target_os = "linux", case::proc("/proc/knn.npz", "/proc/knn.npz: "))]
fn an_output_that_cannot_be_written_is_found_first(
    #[from(five)] folder: Folder,
    #[case] output: &str,
    #[case] word: &str,
) {
    fs::create_dir(folder.path.join("dir.npz")).unwrap();
    let output = folder.run(&format!("{COMMON} --output {output}"));
    fails(&output, word);
    assert!(output.stdout.is_empty());
    assert_eq!(folder.names(), ["dir.npz", "x.npz"]);
}

/// Also has an output of an earlier run, and other queries in `narrow.npz`.
#[fixture]
fn earlier(#[from(five)] folder: Folder) -> Folder {
    save(&folder, "narrow.npz", 11, &matrix(5, 11, 1));
    fs::write(folder.path.join("knn.npz"), "earlier").unwrap();
    folder
}

fn is_kept(earlier: &Folder) {
    let kept = fs::read(earlier.path.join("knn.npz")).unwrap();
    assert_eq!(kept, b"earlier");
    assert_eq!(earlier.names(), ["knn.npz", "narrow.npz", "x.npz"]);
}

#[rstest]
fn a_run_that_fails_leaves_the_earlier_output(
    earlier: Folder,
    #[values("narrow.npz", "none.npz")] query: &str,
) {
    let output = earlier.run(&format!("{COMMON} --query {query} --output knn.npz"));
    fails(&output, query);
    is_kept(&earlier);
}

#[rstest]
fn a_run_without_memory_leaves_the_earlier_output(earlier: Folder) {
    let mut command = earlier.command(&format!("{COMMON} --output knn.npz"));
    command.env("SPARSEK_MAX_MEMORY", "64");
    fails(&command.output().unwrap(), "SPARSEK_MAX_MEMORY");
    is_kept(&earlier);
}

const DENSE: &str = "--data x.npy --metric euclidean --k 4 --backend flex --output knn.npz";

#[rstest]
fn the_memory_is_stated_first(#[from(pair)] folder: Folder) {
    let line = "needs 19.1 KiB on the host (index 2.3 KiB, queries 0 bytes, results 2.3 KiB, work \
                14.5 KiB)\n";
    let printed = folder.runs(DENSE);
    assert!(printed.starts_with(line), "{printed}");
    let printed = folder.runs(&format!("{DENSE} --query y.npy"));
    let line = "needs 9.1 KiB on the host (index 2.3 KiB, queries 336 bytes";
    assert!(printed.starts_with(line), "{printed}");
}

#[rstest]
fn a_search_beyond_the_limit_is_refused_with_its_size(#[from(pair)] folder: Folder) {
    let before = folder.names();
    let output = folder.command(DENSE).env("SPARSEK_MAX_MEMORY", "16K").output().unwrap();
    fails(&output, "the search needs 19.1 KiB, but at most 16.0 KiB may be used");
    assert!(output.stdout.is_empty());
    assert_eq!(folder.names(), before);
}

#[rstest]
#[case::same("x.npz")]
#[case::same("./x.npz")]
#[case::hard_link("hard.npz")]
#[cfg_attr(unix, case::symbolic_link("soft.npz"))]
fn no_input_is_overwritten(
    #[from(five)] folder: Folder,
    #[values("--data x.npz", "--data y.npz --query x.npz")] inputs: &str,
    #[case] output: &str,
) {
    save(&folder, "y.npz", 12, &matrix(5, 12, 2));
    let path = |name: &str| folder.path.join(name);
    let before = fs::read(path("x.npz")).unwrap();
    fs::hard_link(path("x.npz"), path("hard.npz")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("x.npz", path("soft.npz")).unwrap();
    let arguments = COMMON.replace("--data x.npz", inputs);
    let output = folder.run(&format!("{arguments} --output {output}"));
    fails(&output, "would overwrite");
    assert_eq!(fs::read(path("x.npz")).unwrap(), before);
}

#[cfg(unix)]
#[rstest]
fn pipes_and_devices_are_no_inputs(
    folder: Folder,
    #[values("pipe", "/dev/zero", ".")] input: &str,
) {
    let made = std::process::Command::new("mkfifo").arg(folder.path.join("pipe")).status();
    assert!(made.unwrap().success());
    let arguments = COMMON.replace("x.npz", input);
    folder.refuses(&arguments, "not a regular file");
}

// Each word stands for `WORD`.
#[rstest]
#[case::k("--data x.npz --metric dot --output bad.npz --k WORD")]
#[case::metric("--data x.npz --metric WORD --output bad.npz --k 1")]
#[case::radius("--data x.npz --metric dot --output bad.npz --radius WORDx")]
#[case::data("--data WORD --metric dot --output bad.npz --k 1")]
#[case::one_more("--data x.npz --metric dot --output bad.npz --k 1 WORD")]
#[case::option("--data x.npz --metric dot --output bad.npz --k 1 --WORD")]
#[case::backend("--data x.npz --metric dot --output bad.npz --k 1 --backend WORD")]
fn words_of_the_command_line_are_cut_and_escaped(
    #[from(five)] folder: Folder,
    #[values("3\n\nfour", "\u{1b}[2J", &"9".repeat(100_000))] word: &str,
    #[case] arguments: &str,
) {
    let arguments = arguments.replace("WORD", word);
    fails(&folder.command(&arguments).output().unwrap(), "error: ");
    assert_eq!(folder.names(), ["x.npz"]);
}

#[rstest]
fn help_has_sections_and_examples(folder: Folder) {
    common::help(&folder, "--help", "Input Search Output Device");
}
