//! The command of a thread inside another program: what it would print is kept, and who follows it. Empty in the program `vef`.
//!
//! A command belongs to the thread that runs it. Threads that it starts for long work take its [`Watch`] along.

use std::cell::RefCell;
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::sync::Arc;

/// Follows a command while it runs, from any of its threads.
pub trait Watcher: Send + Sync {
    /// `done` units of a phase are done, of `total` if that is known. Called often.
    fn progress(&self, phase: &'static str, done: u64, total: Option<u64>);
    /// Whether the command is to end now: it then unwinds with [`Cancelled`], and leaves no output files.
    fn is_cancelled(&self) -> bool;
}

/// The payload with which a cancelled command unwinds.
#[derive(Debug)]
pub struct Cancelled;

/// What a command leaves.
#[derive(Debug, Default)]
pub struct Printed {
    /// Its result, which the command line prints on stdout.
    pub result: String,
    /// Warnings and remarks, which the command line prints on stderr, by line.
    pub remarks: Vec<String>,
}

/// The command of this thread.
struct Session {
    /// The command line, with `vef`.
    words: Vec<OsString>,
    printed: Printed,
    watch: Watch,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Begins the command of this thread; [`Running`] ends it.
pub(crate) fn begin(words: Vec<OsString>, watcher: Arc<dyn Watcher>) -> Running {
    SESSION.set(Some(Session { words, printed: Printed::default(), watch: Watch(Some(watcher)) }));
    Running
}

/// The command of this thread; ended when dropped, also by unwinding.
pub(crate) struct Running;

impl Running {
    /// What the command has left so far.
    pub(crate) fn printed(&self) -> Printed {
        with(|session| std::mem::take(&mut session.printed)).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        SESSION.take();
    }
}

/// Applies `what` to this thread's session, if there is one.
fn with<T>(what: impl FnOnce(&mut Session) -> T) -> Option<T> {
    SESSION.with_borrow_mut(|session| session.as_mut().map(what))
}

/// Keeps a result; returns whether there is a session for it.
pub(crate) fn keep_result(text: &str) -> bool {
    with(|session| {
        session.printed.result.push_str(text);
        session.printed.result.push('\n');
    })
    .is_some()
}

/// Keeps a remark; returns whether there is a session for it.
pub(crate) fn keep_remark(line: &str) -> bool {
    with(|session| session.printed.remarks.push(line.to_owned())).is_some()
}

/// Whether this thread's command runs inside another program.
pub(crate) fn is_embedded() -> bool {
    with(|_| ()).is_some()
}

/// The words of the command line, `vef` included.
pub(crate) fn command_line() -> Vec<OsString> {
    with(|session| session.words.clone()).unwrap_or_else(|| std::env::args_os().collect())
}

/// Who watches a command, if anybody does; for use in its other threads.
#[derive(Clone, Default)]
pub(crate) struct Watch(Option<Arc<dyn Watcher>>);

impl Watch {
    /// That of this thread's command.
    pub(crate) fn current() -> Self {
        with(|session| session.watch.clone()).unwrap_or_default()
    }

    /// Reports progress, and unwinds if the command is cancelled.
    pub(crate) fn progress(&self, phase: &'static str, done: u64, total: Option<u64>) {
        if let Some(watcher) = &self.0 {
            watcher.progress(phase, done, total);
            self.stop_if_cancelled();
        }
    }

    /// Unwinds if the command is cancelled.
    pub(crate) fn stop_if_cancelled(&self) {
        if self.0.as_ref().is_some_and(|watcher| watcher.is_cancelled()) {
            resume_unwind(Box::new(Cancelled));
        }
    }
}
