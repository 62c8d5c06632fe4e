//! A view of an `MPI_Status` in the program's memory.

use crate::detect::Abi;
use crate::tables::HiddenStatus;

/// A status written by an MPI call.
#[derive(Clone, Copy)]
pub struct Status<'a> {
    address: *const u8,
    abi: &'a Abi,
}

impl<'a> Status<'a> {
    /// The status at an address.
    ///
    /// # Safety
    /// A status of this ABI must be at the address as long as the view lives.
    #[inline(always)]
    pub unsafe fn at(address: *const u8, abi: &'a Abi) -> Self {
        Status { address, abi }
    }

    /// `MPI_SOURCE`. MPICH 4.0 leaves 0 there when a request to `MPI_PROC_NULL` completes; use the posted source instead.
    #[inline(always)]
    pub fn source(&self) -> i32 {
        self.int(self.abi.status.source)
    }

    /// `MPI_TAG`.
    #[inline(always)]
    pub fn tag(&self) -> i32 {
        self.int(self.abi.status.tag)
    }

    /// `MPI_ERROR`; defined only after a call that returned `MPI_ERR_IN_STATUS`.
    #[inline(always)]
    pub fn error(&self) -> i32 {
        self.int(self.abi.status.error)
    }

    /// The number of bytes received; `None` if the ABI does not define the field (`MPI_Get_elements`).
    #[inline(always)]
    pub fn bytes(&self) -> Option<u64> {
        match self.abi.status.hidden {
            HiddenStatus::Split { low, high_and_cancelled } => {
                let (low, high) = (self.int(low) as u32, self.int(high_and_cancelled) as u32 >> 1);
                Some(u64::from(high) << 32 | u64::from(low))
            }
            HiddenStatus::Plain { bytes, .. } => {
                // SAFETY: the field is inside the status (`at`), aligned as C does.
                Some(unsafe { *self.address.add(bytes).cast::<u64>() })
            }
            HiddenStatus::Opaque => None,
        }
    }

    /// Whether the operation was cancelled; `None` if the ABI does not define the field (`MPI_Test_cancelled`).
    #[inline(always)]
    pub fn cancelled(&self) -> Option<bool> {
        match self.abi.status.hidden {
            HiddenStatus::Split { high_and_cancelled, .. } => Some(self.int(high_and_cancelled) & 1 != 0),
            HiddenStatus::Plain { cancelled, .. } => Some(self.int(cancelled) != 0),
            HiddenStatus::Opaque => None,
        }
    }

    /// The address of the status.
    pub fn address(&self) -> *const u8 {
        self.address
    }

    #[inline(always)]
    fn int(&self, offset: usize) -> i32 {
        // SAFETY: the field is inside the status (`at`), aligned as C does.
        unsafe { *self.address.add(offset).cast::<i32>() }
    }
}
