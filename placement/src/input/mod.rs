//! Readers of placement files, captures, and the files and arguments of launchers.

pub mod captured;
pub(crate) mod file;
pub(crate) mod hostfile;
pub(crate) mod hosts;
pub(crate) mod hwloc;
pub(crate) mod lines;
pub(crate) mod machinefile;
pub(crate) mod nodelist;
pub(crate) mod rankfile;
