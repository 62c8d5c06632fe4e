//! Detection of the loaded MPI and its ABI.

use std::ffi::{CStr, c_int};
use std::ops::Deref;

use crate::error::{Error, Result};
use crate::handles::{Comm, Datatype};
use crate::symbols::{self, Function};
use crate::tables::{Datatypes, Flavour, Handles, PredefinedHandle, Table};

/// Room for the version text: MPICH requires 8192 bytes, and older versions write all of them.
const VERSION_ROOM: usize = 16384;

/// The ABI of the MPI that is loaded in this process.
///
/// Dereferences to the [`Table`] of the ABI; predefined handles are those of this process.
#[derive(Clone, Debug)]
pub struct Abi {
    table: &'static Table,
    handle_mask: usize,
    /// The text of `MPI_Get_library_version`.
    pub version: String,
    /// The predefined handles as [`word`](crate::handles::Request::word)s.
    pub predefined: Handles<usize>,
    /// The predefined datatypes as words. `None`: this MPI lacks the type.
    pub basic: Datatypes<Option<usize>>,
}

impl Deref for Abi {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        self.table
    }
}

impl Abi {
    /// Detects which MPI is loaded; works before `MPI_Init`.
    ///
    /// # Errors
    /// [`Error::NotLoaded`] in a process without MPI, [`Error::UnknownLibrary`] for an unknown kind of MPI, [`Error::UnknownAbi`] for
    /// a later version of the standard ABI than this crate's table is of,
    /// [`Error::MissingSymbol`] if the library lacks a symbol of its kind.
    pub fn detect() -> Result<Abi> {
        let version = library_version()?;
        let flavour = match standard_abi() {
            Some((STANDARD_ABI, _)) => Some(Flavour::Standard),
            Some((major, minor)) => return Err(Error::UnknownAbi { major, minor, version }),
            None => flavour(&version),
        };
        let flavour = flavour.ok_or_else(|| Error::UnknownLibrary { version: version.clone() })?;
        Self::of(flavour, version)
    }

    /// The ABI of a flavour, with the predefined handles looked up in this process.
    fn of(flavour: Flavour, version: String) -> Result<Abi> {
        static TABLES: [Table; 3] =
            [Table::of(Flavour::Mpich), Table::of(Flavour::OpenMpi), Table::of(Flavour::Standard)];
        let table = &TABLES[flavour as usize];
        Ok(Abi {
            table,
            handle_mask: if table.handle_size == 4 { 0xffff_ffff } else { usize::MAX },
            version,
            predefined: table.handles.try_map(resolve)?,
            basic: table.datatypes.try_map(|place| Ok::<_, Error>(resolve(place).ok()))?,
        })
    }

    /// The bits of a word that hold a handle (of any type but `MPI_File`, which fills the word).
    #[inline(always)]
    pub fn handle_mask(&self) -> usize {
        self.handle_mask
    }

    /// Whether handles are `int`s, not pointers.
    #[inline(always)]
    pub fn has_int_handles(&self) -> bool {
        self.handle_mask != usize::MAX
    }

    /// Reads a handle (of any type but `MPI_File`) from memory.
    ///
    /// # Safety
    /// The address must be that of a handle.
    #[inline(always)]
    pub unsafe fn read_handle(&self, address: *const u8) -> usize {
        // SAFETY: the contract; a handle is 4 or 8 bytes wide.
        unsafe {
            match self.has_int_handles() {
                true => *address.cast::<u32>() as usize,
                false => *address.cast::<usize>(),
            }
        }
    }

    /// `MPI_COMM_WORLD`.
    pub fn comm_world(&self) -> Comm {
        // SAFETY: what the ABI says it is.
        unsafe { Comm::from_word(self.predefined.comm_world) }
    }

    /// `MPI_COMM_SELF`.
    pub fn comm_self(&self) -> Comm {
        // SAFETY: what the ABI says it is.
        unsafe { Comm::from_word(self.predefined.comm_self) }
    }

    /// `MPI_BYTE`.
    pub fn byte(&self) -> Datatype {
        // SAFETY: what the ABI says it is; every MPI has it.
        unsafe { Datatype::from_word(self.basic.byte.unwrap_or(self.predefined.datatype_null)) }
    }
}

static GET_LIBRARY_VERSION: Function = Function::named(c"PMPI_Get_library_version");

/// The text of `MPI_Get_library_version` of the MPI in this process.
fn library_version() -> Result<String> {
    let mut text = vec![0u8; VERSION_ROOM];
    let mut length: c_int = 0;
    // SAFETY: int MPI_Get_library_version(char *version, int *resultlen); the room is twice the required size.
    let code =
        unsafe { GET_LIBRARY_VERSION.call::<i32, 2>([text.as_mut_ptr() as usize, &raw mut length as usize]) };
    if code != Some(0) {
        return Err(Error::NotLoaded);
    }
    text.truncate(usize::try_from(length).unwrap_or(0).min(VERSION_ROOM));
    // The length may include a NUL or a line end.
    Ok(String::from_utf8_lossy(&text).trim_end_matches(['\0', '\n']).to_owned())
}

/// The kind of the MPI in this process, which has an ABI of its own, by its exported symbols and its version text.
fn flavour(version: &str) -> Option<Flavour> {
    flavour_by_name(version).or_else(|| flavour_by_symbols(|name| symbols::data(name).is_some()))
}

fn flavour_by_name(version: &str) -> Option<Flavour> {
    const NAMES: [(&str, Flavour); 7] = [
        ("Open MPI", Flavour::OpenMpi),
        ("IBM Spectrum MPI", Flavour::OpenMpi),
        ("FUJITSU MPI", Flavour::OpenMpi),
        ("MVAPICH", Flavour::Mpich),
        ("Intel(R) MPI", Flavour::Mpich),
        ("ParaStation", Flavour::Mpich),
        ("MPICH", Flavour::Mpich),
    ];
    NAMES.iter().find(|(name, _)| version.contains(name)).map(|(_, flavour)| *flavour)
}

/// The kind of a library with an unknown version text: Open MPI's handles are data symbols, MPICH's internal names
/// begin with `MPIR_`.
fn flavour_by_symbols(exports: impl Fn(&CStr) -> bool) -> Option<Flavour> {
    if exports(c"ompi_mpi_comm_world") {
        Some(Flavour::OpenMpi)
    } else if exports(c"MPIR_Process") {
        Some(Flavour::Mpich)
    } else {
        None
    }
}

/// The version of the standard ABI that [`Flavour::Standard`] is of. Another minor version adds to it; another major one may differ.
const STANDARD_ABI: c_int = 1;

/// The version of the standard ABI that the MPI in this process has; `MPI_Abi_get_version` returns -1 for an ABI of its own.
fn standard_abi() -> Option<(c_int, c_int)> {
    static ABI_GET_VERSION: Function = Function::named(c"PMPI_Abi_get_version");
    let (mut major, mut minor): (c_int, c_int) = (-1, -1);
    // SAFETY: int MPI_Abi_get_version(int *abi_major, int *abi_minor), callable at any time.
    let code = unsafe { ABI_GET_VERSION.call([&raw mut major as usize, &raw mut minor as usize]) };
    (code == Some(0) && major >= 1).then_some((major, minor))
}

fn resolve(place: PredefinedHandle) -> Result<usize> {
    match place {
        PredefinedHandle::Value(value) => Ok(value),
        PredefinedHandle::Symbol(name) => match symbols::data(name) {
            Some(address) => Ok(address.as_ptr() as usize),
            None => Err(Error::MissingSymbol { symbol: name.to_str().unwrap_or("(not text)") }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_mpi_is_told_so() {
        assert_eq!(Abi::detect().unwrap_err(), Error::NotLoaded);
    }

    #[test]
    fn libraries_are_known_by_what_they_say() {
        let texts = [
            ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", Flavour::Mpich),
            ("Intel(R) MPI Library 2021.9 for Linux* OS\n", Flavour::Mpich),
            ("MVAPICH2 Version      :\t2.3.7\n", Flavour::Mpich),
            ("MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)", Flavour::Mpich),
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", Flavour::OpenMpi),
            ("IBM Spectrum MPI v10.4.0.3", Flavour::OpenMpi),
        ];
        for (text, expected) in texts {
            assert_eq!(flavour_by_name(text), Some(expected), "{text}");
        }
        assert_eq!(flavour_by_name("Some MPI 1.0"), None);
    }

    #[test]
    fn libraries_of_another_name_are_known_by_what_they_export() {
        assert_eq!(flavour_by_symbols(|name| name == c"ompi_mpi_comm_world"), Some(Flavour::OpenMpi));
        assert_eq!(flavour_by_symbols(|name| name == c"MPIR_Process"), Some(Flavour::Mpich));
        assert_eq!(flavour_by_symbols(|_| false), None);
    }
}
