//! The headers that are checked in are those that cbindgen makes of the sources.
//!
//! `VEF_WRITE_HEADERS=1 cargo test -p replay-ffi header::` writes them anew.

use std::path::Path;

/// Makes a header of the given sources, whose order is that of the header.
fn generate(config: &str, sources: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join(config)).expect("the configuration");
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |b, source| {
        b.with_src(root.join("src").join(source))
    });
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    tidy(&String::from_utf8(header).expect("text"))
}

/// Leaves out what Rust wants said of each unsafe function, as the header's opening says it for C, and blank space.
fn tidy(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in header.lines() {
        if line.trim() == "* # Safety" {
            skipping = true;
            if kept.last() == Some(&" *") {
                kept.pop();
            }
        }
        skipping &= line.trim() != "*/";
        if !skipping {
            kept.push(line.trim_end());
        }
    }
    // C89 has no other comments.
    let header = (kept.join("\n") + "\n").replace("// __cplusplus", "/* __cplusplus */");
    // Comments of one line in one line.
    let comment = |text: &str| (text.lines().count() == 1).then(|| format!("/** {text} */"));
    let mut out = String::new();
    let mut rest = header.as_str();
    while let Some((before, after)) = rest.split_once("/**\n") {
        let (text, behind) = after.split_once("*/").expect("the end of a comment");
        let line = text.trim().strip_prefix("* ").and_then(comment);
        out += before;
        out += &line.unwrap_or_else(|| format!("/**\n{text}*/"));
        rest = behind;
    }
    out + rest
}

fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name);
    if std::env::var_os("VEF_WRITE_HEADERS").is_some() {
        std::fs::write(&path, generated).expect("a header to write");
    }
    let there = std::fs::read_to_string(&path).expect("the header");
    assert!(
        there == generated,
        "{name} is not what the sources say: VEF_WRITE_HEADERS=1 cargo test -p replay-ffi header::"
    );
}

#[test]
fn vef_replay_h() {
    compare(
        "vef_replay.h",
        &generate(
            "cbindgen.toml",
            &[
                "status.rs",
                "message.rs",
                "description.rs",
                "builder.rs",
                "job.rs",
                "collective.rs",
                "events.rs",
                "instance.rs",
                "engine.rs",
            ],
        ),
    );
}

#[test]
fn trace_manager_h() {
    compare("TraceManager.h", &generate("trace_manager.toml", &["trace_manager.rs"]));
}
