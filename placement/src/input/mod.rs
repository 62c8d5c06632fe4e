//! Parsers of the files and arguments of launchers, one file each.

pub(crate) mod hostfile;
pub(crate) mod hosts;
pub(crate) mod hwloc;
pub(crate) mod lines;
pub(crate) mod machinefile;
pub(crate) mod nodelist;
pub(crate) mod policy;
pub(crate) mod rankfile;
