//! The program `vef`; everything is in the library, which the Python package uses, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    vef_cli::main()
}
