//! `vef run --live`: shows, while the program runs, what its ranks do: in place on a terminal, otherwise a line a second.

use crate::output;
use crate::session;
use console::Term;
use reports::live::{Live, lines, summary};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at the capture.
const INTERVAL: Duration = Duration::from_secs(1);

/// A longer line of the program is shown in pieces.
const LONGEST_LINE: u64 = 64 << 10;

/// For how long output of the program is awaited after its end: processes that it left behind may hold the pipes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last lines of a terminal, in which the view is.
struct Screen {
    term: Term,
    shown: Vec<String>,
    /// Number of lines of the view that are on the terminal.
    drawn: usize,
}

impl Screen {
    /// Lets `between` write where the view was, and shows the view behind that. Errors are those of a terminal that is gone.
    fn draw(&mut self, between: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.term.clear_last_lines(self.drawn)?;
        self.term.flush()?;
        between()?;
        self.shown.iter().try_for_each(|line| self.term.write_line(line))?;
        self.drawn = self.shown.len();
        self.term.flush()
    }
}

/// The view of a running program. It disappears when dropped.
pub(super) struct View {
    screen: Option<Arc<Mutex<Screen>>>,
    over: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Reports of the threads that pass on the program's output, and their number.
    passed: (mpsc::Sender<()>, mpsc::Receiver<()>),
    passing: usize,
}

impl View {
    /// A view of the capture in `directory`.
    pub(super) fn new(directory: &Path) -> Self {
        let on_terminal = io::stderr().is_terminal() && !session::is_embedded();
        let screen = on_terminal.then(|| {
            let term = Term::buffered_stderr();
            Arc::new(Mutex::new(Screen { term, shown: Vec::new(), drawn: 0 }))
        });
        let mut live = Live::new(directory);
        let (over, is_over) = mpsc::channel();
        let shown = screen.clone();
        let begin = Instant::now();
        let thread = std::thread::spawn(move || {
            while is_over.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let ranks = live.look();
                match &shown {
                    None => output::remark(summary(&ranks, begin.elapsed())),
                    Some(screen) => show(screen, |term| {
                        let (height, width) = term.size_checked().unwrap_or((24, 80));
                        // The cursor has the last line; a full line would take the next one, too.
                        let (height, width) = (height.saturating_sub(1), width.saturating_sub(1));
                        lines(&ranks, begin.elapsed(), width.into(), height.into())
                    }),
                }
            }
        });
        Self { screen, over: Some(over), thread: Some(thread), passed: mpsc::channel(), passing: 0 }
    }

    /// Lets the program write to pipes where it would write to the terminal of the view.
    pub(super) fn redirect(&self, command: &mut Command) {
        if self.screen.is_some() {
            command.stderr(Stdio::piped());
            if io::stdout().is_terminal() {
                command.stdout(Stdio::piped());
            }
        }
    }

    /// Passes on what the program writes to these pipes, line by line, above the view.
    pub(super) fn pass_on(&mut self, child: &mut Child) {
        if let Some(output) = child.stdout.take() {
            self.pass(output, io::stdout());
        }
        if let Some(errors) = child.stderr.take() {
            self.pass(errors, io::stderr());
        }
    }

    fn pass(&mut self, from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) {
        let Some(screen) = self.screen.clone() else { return };
        let passed = self.passed.0.clone();
        self.passing += 1;
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if line.last() != Some(&b'\n') {
                    line.push(b'\n');
                }
                let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = screen.draw(|| to.write_all(&line).and_then(|()| to.flush()));
                line.clear();
            }
            let _ = passed.send(());
        });
    }
}

/// Replaces the lines of the view.
fn show(screen: &Mutex<Screen>, lines: impl FnOnce(&Term) -> Vec<String>) {
    let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
    screen.shown = lines(&screen.term);
    let _ = screen.draw(|| Ok(()));
}

impl Drop for View {
    fn drop(&mut self) {
        for _ in 0..self.passing {
            let _ = self.passed.1.recv_timeout(PATIENCE);
        }
        self.over.take();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
        if let Some(screen) = &self.screen {
            show(screen, |_| Vec::new());
        }
    }
}
