//! A tool in Rust: counts the messages that each rank sends and says so at the end.
//!
//! ```text
//! cargo build -p mpi-abi --example count_sends
//! vef run --tool target/debug/examples/libcount_sends.so --tool capture -n 4 -- ./program
//! ```

use mpi_abi::prototypes::{Call, Category, Timing};
use mpi_abi::tool::{ChainPlace, Intercepted, Tool};
use std::ffi::CStr;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

struct CountSends {
    position: usize,
    sends: AtomicU64,
}

impl Tool for CountSends {
    const NAME: &'static CStr = c"count_sends";

    fn open(place: &ChainPlace) -> Result<Self, String> {
        Ok(Self { position: place.position, sends: AtomicU64::new(0) })
    }

    fn intercepts(&self, call: Call) -> bool {
        call.category() == Category::Send && call.timing() != Timing::Persistent
    }

    fn call(&self, call: &mut Intercepted<'_>) -> i32 {
        self.sends.fetch_add(1, Ordering::Relaxed);
        call.pass_on()
    }

    fn close(&self) {
        // One write: the ranks share the terminal, and `eprintln!` writes each piece of a line by itself.
        let sends = self.sends.load(Ordering::Relaxed);
        let line = format!("count_sends at {}: {sends} messages\n", self.position);
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

mpi_abi::vef_tool!(CountSends);
