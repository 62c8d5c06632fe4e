//! Chakra: the execution traces of MLCommons, a graph of computing and communication for each rank.
//!
//! One file a rank, `PREFIX.<rank>.et` in protocol buffers, also compressed by gzip, or the JSON of Chakra's feeder. Only data
//! dependencies are followed: control dependencies are PyTorch's call tree, and both together have circles.

mod protobuf;

mod node;

mod file;
mod groups;

mod read;
mod write;

use crate::format::Info;
use crate::options::Setting;

/// In protocol buffers, or the feeder's JSON.
pub(crate) const INFO: Info = Info::graph(
    "chakra",
    "Chakra execution traces",
    |start| file::is_protobuf(start.bytes) || file::is_json(start.bytes),
    read::read,
)
.checked_by(read::check)
.with(&[Setting::Streams, Setting::StreamOrder, Setting::Groups, Setting::FlopsPerSecond])
.written_by(write::write, &["et"]);
