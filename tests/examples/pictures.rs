//! Pictures of a report as people see it: `cargo run -p vef-tests --example pictures -- REPORT.html DIR`.
//!
//! Writes `light.png`, `dark.png`, `narrow.png` (a window of 700 pixels), `print.png` and `print.pdf` (A4), and says what the
//! browser had to say of the page.

#![allow(clippy::print_stdout, clippy::print_stderr)] // It is a program for people.

use std::path::Path;
use std::process::ExitCode;
use vef_tests::browser::Browser;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [page, directory] = &arguments[..] else {
        eprintln!("usage: pictures PAGE.html DIR");
        return ExitCode::from(2);
    };
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory).expect("a directory");
    let Some(browser) = Browser::start(1280, 800) else { return ExitCode::from(2) };
    let write = |name: &str, bytes: Vec<u8>| {
        std::fs::write(directory.join(name), bytes).expect("a picture");
        println!("{}", directory.join(name).display());
    };
    browser.open(Path::new(page));
    // Scripts that draw have drawn when nothing is left to do.
    browser.wait("return document.readyState == 'complete'");
    std::thread::sleep(std::time::Duration::from_secs(2));
    browser.prefer_dark(false);
    write("light.png", browser.picture());
    browser.prefer_dark(true);
    write("dark.png", browser.picture());
    browser.prefer_dark(false);
    browser.resize(700, 800);
    write("narrow.png", browser.picture());
    browser.resize(794, 1123);
    browser.as_printed(true);
    write("print.png", browser.picture());
    write("print.pdf", browser.pdf());
    for line in browser.console() {
        println!("console: {line}");
    }
    ExitCode::SUCCESS
}
