//! Every relative link in our Markdown leads to a file that exists, and to a heading of it; in pages that are installed, to one that is
//! installed with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use vef_tests::root;

/// What `scripts/install` puts into `share/doc/vef`.
const INSTALLED: [&str; 6] = ["README.md", "CHANGELOG.md", "LICENSE-", "docs", "examples", "adapters"];

/// README, CHANGELOG and all pages of `docs/`, and those beside the sources.
fn pages() -> Vec<PathBuf> {
    let mut pages =
        vec![root().join("fuzz/README.md"), root().join("README.md"), root().join("CHANGELOG.md")];
    let mut directories = vec![root().join("docs"), root().join("examples"), root().join("adapters")];
    while let Some(directory) = directories.pop() {
        for entry in
            fs::read_dir(&directory).expect("a directory").map(|entry| entry.expect("an entry").path())
        {
            match entry.is_dir() {
                true => directories.push(entry),
                false if entry.extension().is_some_and(|suffix| suffix == "md") => pages.push(entry),
                false => {}
            }
        }
    }
    pages
}

/// The lines of a page outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        (!inside && !is_fence).then_some((number + 1, line))
    })
}

/// A line without its code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' '))
            .then(|| title.trim().replace('`', "").to_lowercase())
    });
    headings
        .map(|title| {
            let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let times = seen.entry(anchor.clone()).and_modify(|times| *times += 1).or_default();
            if *times == 0 { anchor } else { format!("{anchor}-{times}") }
        })
        .collect()
}

/// The targets of a line's links and pictures.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let behind = |opening: &str, closing: char| {
        let parts = line.split(opening).skip(1).filter_map(|part| part.split_once(closing));
        parts.map(|(target, _)| target.to_owned()).collect::<Vec<_>>()
    };
    [behind("](", ')'), behind("src=\"", '"'), behind("href=\"", '"')].concat()
}

/// Why a link of `page` leads nowhere.
fn broken(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let there = if file.is_empty() { page.to_path_buf() } else { page.parent()?.join(file) };
    if let Err(error) = there.metadata() {
        return Some(format!("{}: {error}", there.display()));
    }
    let installed = |path: &Path| {
        let path = path.canonicalize().ok()?;
        let path = path.strip_prefix(root().canonicalize().ok()?).ok()?.to_str()?.to_owned();
        Some(INSTALLED.iter().any(|beginning| path.starts_with(beginning)))
    };
    if installed(page) == Some(true) && installed(&there) != Some(true) {
        return Some(format!("{target} is not installed beside it"));
    }
    let anchor = anchor?;
    let other = if file.is_empty() { text.to_owned() } else { fs::read_to_string(&there).ok()? };
    let known = anchors(&other);
    (!known.iter().any(|known| known == anchor)).then(|| format!("no heading #{anchor} in {known:?}"))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut wrong, mut links) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, line) in prose(&text) {
            for target in targets(line) {
                links += 1;
                wrong.extend(
                    broken(&page, &text, &target).map(|why| format!("{}:{number}: {why}", page.display())),
                );
            }
        }
    }
    assert!(links > 60, "{links} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_summary_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a page");
    let listed: BTreeSet<String> =
        summary.lines().flat_map(targets).filter(|target| !target.contains("://")).collect();
    let files = fs::read_dir(root().join("docs")).expect("a directory");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("a name"));
    let pages: BTreeSet<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    assert_eq!(listed, pages);
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# One `two`: three\n## A\n## A\n```\n# no heading\n```\n### Ranks & nodes, 2²\n#none\n";
    assert_eq!(anchors(page), ["one-two-three", "a", "a-1", "ranks--nodes-2²"]);
    assert_eq!(targets("[a](b.md#c), `[d](e)`, <img src=\"f.png\">"), ["b.md#c", "f.png"]);
    let page = root().join("docs/replay.md");
    assert!(broken(&page, "", "nowhere.md").is_some() && broken(&page, "# A", "#b").is_some());
    assert!(broken(&page, "# A", "#a").is_none() && broken(&page, "", "../README.md#install").is_none());
}
