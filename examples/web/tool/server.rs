//! Serves the files of one folder on this machine.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use crate::Result;

/// Serves until the process ends. Port 0 takes a free one.
pub fn start(folder: &Path, port: u16) -> Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|e| format!("{port}: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let folder = folder.to_path_buf();
    let serving = thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            // A browser that goes away is no error.
            thread::spawn(move || answer(stream, &folder).ok());
        }
    });
    Ok((address, serving))
}

fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut line = String::new();
    let mut reader = BufReader::new(stream.try_clone()?);
    reader.read_line(&mut line)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (status, kind, body) = match file(&line, folder).and_then(|path| {
        let kind = kind(&path);
        fs::read(path).ok().map(|body| (kind, body))
    }) {
        Some((kind, body)) => ("200 OK", kind, body),
        None => ("404 Not Found", "text/plain", b"not found".to_vec()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// The file of a request line. Folders are not served.
fn file(line: &str, folder: &Path) -> Option<PathBuf> {
    let path = line.strip_prefix("GET /")?.split([' ', '?']).next()?;
    let name = if path.is_empty() { "index.html" } else { path };
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    (plain && !name.starts_with('.')).then(|| folder.join(name))
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET / HTTP/1.1", Some("f/index.html"))]
    #[case("GET /?flex HTTP/1.1", Some("f/index.html"))]
    #[case("GET /app.js HTTP/1.1", Some("f/app.js"))]
    #[case("GET /../secret HTTP/1.1", None)]
    #[case("GET /.. HTTP/1.1", None)]
    #[case("GET /a/b HTTP/1.1", None)]
    #[case("POST /app.js HTTP/1.1", None)]
    fn only_plain_names_are_served(#[case] line: &str, #[case] expected: Option<&str>) {
        assert_eq!(file(line, Path::new("f")), expected.map(PathBuf::from));
    }
}
