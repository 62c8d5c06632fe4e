//! Which of the known names a misspelt word most likely means.

/// The one of `names` that is most like `word`, and nearly as long: at most a third of its letters are wrong, missing, too many or swapped with
/// the next.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let wrong = |name: &&str| strsim::damerau_levenshtein(&word, name);
    names
        .into_iter()
        .min_by_key(|name| (wrong(name), name.len().abs_diff(word.len())))
        .filter(|name| 3 * wrong(name) <= name.len())
}

/// `did you mean NAME? `, with the blank, to stand in front of the names; empty if none is like `word`, or `word` is one.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names)
        .filter(|name| *name != word)
        .map(|name| format!("did you mean {name}? "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_letters_may_be_wrong() {
        let names = ["vef", "vefx", "dragonfly", "torus"];
        for (word, name) in [
            ("vexf", Some("vefx")),
            ("vfex", Some("vefx")),
            ("Vefxx", Some("vefx")),
            ("vet", Some("vef")),
            ("dragnofyl", Some("dragonfly")),
            ("tours", Some("torus")),
            ("txt", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), name, "{word}");
        }
        assert_eq!(did_you_mean("torsu", names), "did you mean torus? ");
        assert_eq!(did_you_mean("mesh", names), "");
        assert_eq!(did_you_mean("torus", names), "");
    }
}
