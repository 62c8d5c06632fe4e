//! The command vef.

fn main() {}
