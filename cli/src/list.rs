//! How commands are listed.

/// The list of commands: each is a file of the module, with its `Arguments` (options, help and examples) and
/// what it does, `run`.
macro_rules! commands {
    ($($variant:ident => $module:ident,)*) => {
        /// A command with its arguments.
        #[derive(clap::Subcommand)]
        pub enum Command {
            $($variant(Box<$module::Arguments>),)*
        }

        impl Command {
            /// Runs the command and returns its exit code.
            ///
            /// # Errors
            /// An error in its input, with file and position.
            pub fn run(&self) -> Result<ExitCode, Failure> {
                match self {
                    $(Self::$variant(arguments) => {
                        Ok(std::process::Termination::report($module::run(arguments)?))
                    })*
                }
            }
        }
    };
}

pub(crate) use commands;
