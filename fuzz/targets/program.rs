//! Any program, kept to MPI's rules or not: its capture is refused, or makes a trace.
#![no_main]

vef_fuzz::target!(|bytes| {
    let Some((&how, rest)) = bytes.split_first() else { return };
    vef_fuzz::with_directory(|directory| {
        vef_fuzz::program::write(directory, rest);
        vef_fuzz::tools::mix(directory, how);
    });
});
