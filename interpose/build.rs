//! What this library calls of its own goes straight there: its functions bear MPI's names, and looking hundreds of them up is much
//! of what loading it costs.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo::rerun-if-changed=build.rs");
}
