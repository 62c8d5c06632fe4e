//! The data of a report as Markdown, to be put into notes and reviews.

use super::model::Report;
use super::text::{Section, Shown};
use std::fmt::Write as _;

impl Report {
    /// Headings, and what `vef stats` shows below each, as it stands.
    pub fn to_markdown(&self, shown: &Shown) -> String {
        let title = self.head.command.as_deref().unwrap_or(&self.head.file);
        let title = title.replace(['`', '\n'], " ").replace('&', "&amp;").replace('<', "&lt;");
        // Nothing in it ends the block.
        let block = |text: &str| format!("```text\n{}```\n", text.replace("```", "'''"));
        let mut out = format!("# {title}\n\n{}", block(&self.head_text()));
        for section in Section::ALL {
            let text = self.to_text(Some(section), shown);
            if let Some((title, rows)) = text.trim_start().split_once('\n') {
                // Writing to a string does not fail.
                let _ = write!(out, "\n## {title}\n\n{}", block(rows));
            }
        }
        out
    }
}
