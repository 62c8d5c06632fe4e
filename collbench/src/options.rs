//! Options and their defaults, which are described once, for the command line.

/// The defaults of options.
pub(crate) fn defaults<T: clap::Args>() -> T {
    let command = T::augment_args(clap::Command::new("defaults").no_binary_name(true));
    T::from_arg_matches(&command.get_matches_from([""; 0])).expect("an option without a default is optional")
}
