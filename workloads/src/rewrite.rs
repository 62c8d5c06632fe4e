//! What joining and cutting traces have in common: errors, and the file that is written.

use std::path::Path;
use vef_format::container::{About, ContainerError, Settings, Writer};
use vef_format::error::Located;
use vef_format::format::named_container;
use vef_format::new_file::NewFile;
use vef_format::record::{Header, WriteError};
use vef_format::text;
use vef_format::trace::{TraceError, TraceWriter};

/// Why traces are not joined, or a trace is not cut.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A trace cannot be read.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// The result cannot be written.
    #[error(transparent)]
    Write(#[from] Located<WriteError>),
    /// A request that no trace satisfies, or a trace that does not fit.
    #[error("{0}")]
    Unfit(String),
}

impl From<ContainerError> for RewriteError {
    fn from(error: ContainerError) -> Self {
        Self::Read(error.into())
    }
}

/// Writes the trace `to`, a container if its name ends in `.vefx`, with what `fill` writes.
pub(crate) fn write(
    to: &Path,
    header: &Header,
    about: &About,
    settings: Settings,
    fill: impl FnOnce(&mut TraceWriter<&std::fs::File>) -> Result<(), RewriteError>,
) -> Result<(), RewriteError> {
    let failed = |error: WriteError| RewriteError::Write(Located::file(to, error));
    let new = NewFile::create(to).map_err(|error| failed(error.into()))?;
    let mut writer = match named_container(to) {
        true => {
            let writer = Writer::new(new.file(), header, about, settings).map_err(failed)?;
            TraceWriter::Container(Box::new(writer))
        }
        false => TraceWriter::Text(text::Writer::new(new.file(), header).map_err(failed)?),
    };
    fill(&mut writer)?;
    writer.finish().map_err(failed)?;
    new.finish().map_err(|error| failed(error.into()))
}
