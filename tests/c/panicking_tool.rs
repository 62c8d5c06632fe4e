//! A tool that panics in `MPI_Isend`, before or after it has called MPI (`THROWS`).

use mpi_abi::prototypes::Call;
use mpi_abi::tool::{ChainPlace, Intercepted, Tool};
use std::ffi::CStr;

struct Panicking;

fn panic_in(place: &str) {
    assert_ne!(std::env::var("THROWS").as_deref(), Ok(place));
}

impl Tool for Panicking {
    const NAME: &'static CStr = c"panicking";

    fn open(_place: &ChainPlace) -> Result<Self, String> {
        Ok(Self)
    }

    fn intercepts(&self, call: Call) -> bool {
        call == Call::MPI_Isend
    }

    fn call(&self, call: &mut Intercepted<'_>) -> i32 {
        panic_in("before");
        let code = call.pass_on();
        panic_in("after");
        code
    }
}

mpi_abi::vef_tool!(Panicking);
