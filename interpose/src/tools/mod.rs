//! The built-in tools of the chain besides the recorder: they use the interface of every other tool ([`mpi_abi::tool`]).

mod arguments;
mod handles;
mod lines;
mod profile;
mod text;

use mpi_abi::tool::Descriptor;
use std::path::{Path, PathBuf};

/// `profile`: counts, times and bytes by function and by peer.
pub(crate) static PROFILE: Descriptor = Descriptor::of::<profile::Profile>();

/// `text`: time-independent traces that people can read.
pub(crate) static TEXT: Descriptor = Descriptor::of::<text::Text>();

/// Where the tool number `instance` of its kind puts its files: `NAME`, `NAME.2`, `NAME.3` …
fn directory(parent: &Path, name: &str, instance: usize) -> PathBuf {
    match instance {
        0 => parent.join(name),
        _ => parent.join(format!("{name}.{}", instance + 1)),
    }
}
