//! Building blocks of the page: places for figures, tiles with a share and its name.

use maud::{Markup, html};
use results::shown::percent;
use vef_format::units::Grouped;

/// The place of a figure, with its caption.
pub(super) fn figure(name: &str, caption: &str) -> Markup {
    explorable_figure(name, caption, "")
}

/// A sentence for figures in which a row is the mean of several ranks; empty for others.
pub(super) fn mean_of(ranks_per_row: u64) -> String {
    match ranks_per_row {
        0..2 => String::new(),
        ranks => format!(" Groups of {} neighbouring ranks are shown by their mean.", Grouped(ranks)),
    }
}

/// Says how many of all a figure shows, unless all.
pub(super) fn first_of(shown: usize, all: usize, which: &str) -> String {
    match all > shown {
        true => format!(" Of {} the {} {which}.", Grouped(all), Grouped(shown)),
        false => String::new(),
    }
}

/// A figure with a hint for those who have a pointer.
pub(super) fn explorable_figure(name: &str, caption: &str, hint: &str) -> Markup {
    html! {
        figure data-figure=(name) {
            div .choices {}
            div .picture {}
            output aria-live="polite" {}
            figcaption { (caption) @if !hint.is_empty() { span .no-print { " " (hint) } } }
        }
    }
}

pub(super) fn share(share: f64, name: &str) -> Markup {
    let class = if share >= 0.8 { "tile good" } else { "tile poor" };
    html! { div class=(class) { b { (percent(share)) } span { (name) } } }
}
