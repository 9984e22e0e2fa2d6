//! Checked downloads for [`npz::load`](super::npz::load), each from a fixed commit, of
//! [Shchur et al., 2018](https://arxiv.org/abs/1811.05868) and
//! [Platonov et al., 2023](https://arxiv.org/abs/2302.11640).

use std::{
    fmt::Write,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use sha1::{Digest, Sha1};
use sparsek::io::{input, output, text};

use super::files::Watch;

/// Downloadable file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// Dataset name.
    pub name: &'static str,
    /// Address.
    pub address: String,
    /// Git blob SHA-1.
    pub blob: &'static str,
}

const SHCHUR: &str = "https://raw.githubusercontent.com/shchur/gnn-benchmark/\
     1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz/";
const PLATONOV: &str = "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/\
     a431395582e929d88271309716bea4fe24ce6318/data/";

const FILES: [(&str, &str, &str, &str); 18] = [
    ("actor", PLATONOV, "actor", "84327f6738c09166380b31319f9f5063ab1104e0"),
    (
        "amazon-computers",
        SHCHUR,
        "amazon_electronics_computers",
        "8120e4148a330b3fafe37c4476823302d9d834b9",
    ),
    (
        "amazon-photo",
        SHCHUR,
        "amazon_electronics_photo",
        "97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
    ),
    ("amazon-ratings", PLATONOV, "amazon_ratings", "29647a8b0ff0ef856d73d683a8c3595bd5efbd38"),
    ("chameleon", PLATONOV, "chameleon_filtered", "90a5725f5f5b4f4a9a02ded8595f86e2969b82ee"),
    ("citeseer", SHCHUR, "citeseer", "0e71905a80ab405875cc6c7a7a15190aa35fec79"),
    ("coauthor-cs", SHCHUR, "ms_academic_cs", "9bdd7da943d86b74297e8d32e99eb64245b52835"),
    ("coauthor-physics", SHCHUR, "ms_academic_phy", "8d8bc12e29aa67f6753a712080eae81079bd7d01"),
    ("cora", SHCHUR, "cora", "b08fd856430b2b7787aa646a33ad51132b4f6f80"),
    ("cora-full", SHCHUR, "cora_full", "2478a176d63fe71090f4c21fe588bf5d381cad80"),
    ("cornell", PLATONOV, "cornell", "f2c24d5a41fa234cec130eb270c8f7cda94fd851"),
    ("minesweeper", PLATONOV, "minesweeper", "cc2387032c65b92a5c520c473db1527cbb329d32"),
    ("pubmed", SHCHUR, "pubmed", "25d0b1bebcb08296348572ca0cebe322fdd085b0"),
    ("questions", PLATONOV, "questions", "4c7cb65057dbc9771af00fdfdee64a41b3875079"),
    ("roman-empire", PLATONOV, "roman_empire", "1f9bae5e95b28e529015269e98acb237b65d8d3b"),
    ("squirrel", PLATONOV, "squirrel_filtered", "a59f6d2e0dc1f11b8e503c426e86f53124c21eb1"),
    ("texas", PLATONOV, "texas", "6d6e861782bb4458ee95077b0ca62d265097cf08"),
    ("tolokers", PLATONOV, "tolokers", "b8375a91a8f3c9e32c84fed7c151bbaf6ea6f0c7"),
];

const BY_HAND: [(&str, &str); 3] = [
    ("ogb", "https://ogb.stanford.edu/docs/nodeprop/"),
    ("graphsaint", "https://github.com/GraphSAINT/GraphSAINT#datasets"),
    ("planetoid", "https://github.com/kimiyoung/planetoid/tree/master/data"),
];

const MOST: u64 = 1 << 30;
const PATIENCE: Duration = Duration::from_secs(30);

/// One-line download error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// Unknown name.
    #[error("no dataset {name:?} is known; there are {known}, and by hand {by_hand}")]
    Unknown {
        /// Name.
        name: String,
        /// Known names.
        known: String,
        /// Others, with pages.
        by_hand: String,
    },
    /// Failed request.
    #[error(
        "{address}: {}; without a network, get the file elsewhere and put it at {}",
        text::clean(reason),
        text::clean(&file.display().to_string())
    )]
    Network {
        /// Address.
        address: String,
        /// Reason.
        reason: String,
        /// File.
        file: PathBuf,
    },
    /// Wrong checksum.
    #[error("{address}: checksum {found} instead of {wanted}; nothing was kept")]
    Checksum {
        /// Address.
        address: String,
        /// Published checksum.
        wanted: String,
        /// Received.
        found: String,
    },
    /// Other existing file.
    #[error(
        "{}: checksum {found} instead of {wanted}; remove the file to download it anew",
        text::clean(&file.display().to_string())
    )]
    Existing {
        /// File.
        file: PathBuf,
        /// Published checksum.
        wanted: String,
        /// Found.
        found: String,
    },
    /// File error.
    #[error("{}: {source}", text::clean(&file.display().to_string()))]
    Io {
        /// File.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl Source {
    /// Lists all sources.
    pub fn all() -> Vec<Self> {
        let source = |&(name, folder, file, blob): &(&'static str, &str, &str, &'static str)| {
            Self { name, address: format!("{folder}{file}.npz"), blob }
        };
        FILES.iter().map(source).collect()
    }

    /// Finds a source by name.
    pub fn named(name: &str) -> Result<Self, DownloadError> {
        let sources = Self::all();
        let known = sources.iter().map(|source| source.name).collect::<Vec<_>>().join(", ");
        let found = sources.into_iter().find(|source| source.name == name);
        found.ok_or_else(|| DownloadError::Unknown {
            name: text::excerpt(name),
            known,
            by_hand: BY_HAND.map(|(name, page)| format!("{name} ({page})")).join(", "),
        })
    }

    /// Downloads `NAME.npz` into `folder`, unless it exists. A wrong checksum writes nothing.
    ///
    /// ```no_run
    /// use std::path::Path;
    ///
    /// use sparsek_gnn::datasets::{download::Source, npz};
    ///
    /// let source = Source::named("tolokers")?;
    /// let file = source.download(Path::new("data"), &mut |_, _, _| ())?;
    /// # Ok::<(), sparsek_gnn::datasets::download::DownloadError>(())
    /// ```
    pub fn download(&self, folder: &Path, watch: Watch) -> Result<PathBuf, DownloadError> {
        let file = folder.join(format!("{}.npz", self.name));
        let failed = |source| DownloadError::Io { file: file.clone(), source };
        if file.exists() {
            let (opened, _) = input::open(&file).map_err(failed)?;
            let mut bytes = Vec::new();
            opened.take(MOST).read_to_end(&mut bytes).map_err(failed)?;
            let found = blob(&bytes);
            return match found == self.blob {
                true => Ok(file),
                false => Err(DownloadError::Existing { file, wanted: self.blob.into(), found }),
            };
        }
        std::fs::create_dir_all(folder).map_err(failed)?;
        let bytes = self.body(watch, &file).map_err(|reason| DownloadError::Network {
            address: self.address.clone(),
            reason,
            file: file.clone(),
        })?;
        let found = blob(&bytes);
        if found != self.blob {
            let (address, wanted) = (self.address.clone(), self.blob.to_string());
            return Err(DownloadError::Checksum { address, wanted, found });
        }
        output::write(&file, &bytes).map_err(failed)?;
        Ok(file)
    }

    fn body(&self, watch: Watch, file: &Path) -> Result<Vec<u8>, String> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let mut response = agent.get(&self.address).call().map_err(|error| error.to_string())?;
        let total = response.body().content_length();
        if total.is_some_and(|total| total > MOST) {
            return Err(format!("{} bytes, at most {MOST} are taken", total.unwrap_or(MOST)));
        }
        let mut reader = response.body_mut().as_reader().take(MOST);
        let (mut bytes, mut part) = (Vec::new(), [0; 1 << 16]);
        loop {
            let read = reader.read(&mut part).map_err(|error| error.to_string())?;
            if read == 0 {
                break;
            }
            bytes.extend_from_slice(&part[..read]);
            watch(file, bytes.len() as u64, total.unwrap_or(0));
        }
        match total.is_none_or(|total| bytes.len() as u64 == total) {
            true => Ok(bytes),
            false => Err(format!("it ended after {} bytes", bytes.len())),
        }
    }
}

fn blob(bytes: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(format!("blob {}\0", bytes.len()));
    digest.update(bytes);
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write,
        net::{Shutdown, TcpListener},
        thread,
    };

    use rstest::rstest;

    use super::*;
    use crate::datasets::scratch::{Folder, empty_folder};

    const HELLO: &str = "ce013625030ba8dba906f756967f9e9ca394464a";

    fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hello", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut part = [0; 1024];
            while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                let read = stream.read(&mut part).unwrap();
                request.extend_from_slice(&part[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            let _ = stream.shutdown(Shutdown::Write);
        });
        address
    }

    fn source(address: String) -> Source {
        Source { name: "hello", address, blob: HELLO }
    }

    #[rstest]
    #[case("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")]
    #[case("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n0\r\n\r\n")]
    fn files_are_downloaded_once(
        #[from(empty_folder)] folder: Folder,
        #[case] answer: &'static str,
    ) {
        let folder = folder.0.join("new");
        let source = source(server(answer));
        let mut last = 0;
        let file = source.download(&folder, &mut |_, done, _| last = done).unwrap();
        assert_eq!((fs::read(&file).unwrap(), last), (b"hello\n".to_vec(), 6));
        assert_eq!(source.download(&folder, &mut |_, _, _| ()).unwrap(), file);
    }

    #[rstest]
    #[case::other("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello\n", "instead of ce0136")]
    #[case::short("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello\n", "get the file elsewhere")]
    #[case::missing("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404")]
    #[case::large("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "at most 1073741824")]
    fn failures_name_the_address_and_keep_nothing(
        #[from(empty_folder)] folder: Folder,
        #[case] answer: &'static str,
        #[case] word: &str,
    ) {
        let source = source(server(answer));
        let error = source.download(&folder.0, &mut |_, _, _| ()).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains(&source.address), "{error}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[rstest]
    fn an_unreachable_address_is_named(#[from(empty_folder)] folder: Folder) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hello", listener.local_addr().unwrap());
        drop(listener);
        let error = source(address.clone()).download(&folder.0, &mut |_, _, _| ()).unwrap_err();
        let file = folder.0.join("hello.npz").display().to_string();
        let error = error.to_string();
        assert!(error.contains(&address) && error.contains(&file), "{error}");
    }

    #[rstest]
    fn another_file_of_the_name_stays(#[from(empty_folder)] folder: Folder) {
        let file = folder.0.join("hello.npz");
        fs::write(&file, "mine").unwrap();
        let error = source(String::new()).download(&folder.0, &mut |_, _, _| ()).unwrap_err();
        assert!(matches!(error, DownloadError::Existing { .. }), "{error}");
        assert_eq!(fs::read(file).unwrap(), b"mine");
    }

    #[test]
    fn names_are_listed_in_order() {
        let sources = Source::all();
        assert!(sources.is_sorted_by_key(|source| source.name));
        assert!(sources.iter().all(|source| source.blob.len() == 40));
        assert!(Source::named("tolokers").unwrap().address.ends_with("/data/tolokers.npz"));
        let error = Source::named("reddit").unwrap_err().to_string();
        assert!(error.contains("tolokers") && error.contains("ogb.stanford.edu"), "{error}");
    }
}
