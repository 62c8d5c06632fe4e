//! What several modules' tests need.

use std::path::{Path, PathBuf};

/// `path` in the folder `shared` that lies beside the project; says so when it is not there.
#[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let found = project.ancestors().map(|folder| folder.join("shared").join(path)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: no ../shared/{path}");
    }
    found
}
