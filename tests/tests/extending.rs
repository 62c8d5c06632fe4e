//! The examples of docs/extending.md fit the sources: each diff can be applied, or has been.

use std::io::Write;
use std::process::{Command, Stdio};
use vef_tests::{installed, root};

/// Whether git could apply a diff to the repository.
fn applies(diff: &str, options: &[&str]) -> Result<(), String> {
    let mut git = Command::new("git")
        .current_dir(root())
        .args(["apply", "--check"])
        .args(options)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git");
    git.stdin.take().expect("a pipe").write_all(diff.as_bytes()).expect("git reads");
    let ended = git.wait_with_output().expect("git ends");
    if ended.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ended.stderr).into_owned()) }
}

#[test]
fn the_examples_apply() {
    if !installed("git") {
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/extending.md")).expect("docs/extending.md");
    let mut section = "";
    let mut diffs = Vec::<(&str, String)>::new();
    let mut in_diff = false;
    for line in page.lines() {
        match line {
            "```diff" => {
                in_diff = true;
                diffs.push((section, String::new()));
            }
            "```" => in_diff = false,
            _ if in_diff => diffs.last_mut().expect("one begins").1 += &format!("{line}\n"),
            _ => section = line.strip_prefix("## ").unwrap_or(section),
        }
    }
    assert!(diffs.len() > 1, "{diffs:?}");
    for (section, diff) in diffs {
        if let Err(why) = applies(&diff, &[])
            && applies(&diff, &["--reverse"]).is_err()
        {
            panic!("{section}: {why}");
        }
    }
}
