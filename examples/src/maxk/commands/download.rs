//! Download of datasets.
use sparsek::io::text::clean;
use sparsek_examples::say;
use sparsek_gnn::datasets::download::Source;

use super::common::{Done, Ended};
use crate::{cli::DownloadArgs, progress::file_bars};

/// Downloads datasets, or lists the known ones.
pub fn download(args: &DownloadArgs) -> Done {
    if args.names.is_empty() {
        for source in Source::all() {
            say!("{:17} {}", source.name, source.address);
        }
        return Ok(Ended::Whole);
    }
    let sources = args.names.iter().map(|name| Source::named(name));
    for source in sources.collect::<Result<Vec<_>, _>>()? {
        let file = source.download(&args.to, &mut file_bars())?;
        let file = clean(&file.display().to_string());
        say!("{file}: maxk train --format npz --data {file}");
    }
    Ok(Ended::Whole)
}
