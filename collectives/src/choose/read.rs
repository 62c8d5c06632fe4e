//! Tables from TOML. Every error says where: line and column, 1-based.

use super::rule::Rule;
use crate::{Algorithm, Operation};
use std::collections::BTreeMap;
use toml::Spanned;
use vef_format::nearest::did_you_mean;

/// What is wrong with a table's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TableError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem: no TOML, not a table of rules, an algorithm that the operation does not have, more channels
    /// than there can be, a rule that never holds.
    pub message: String,
}

/// The rules of a table in text, by operation.
pub(super) fn rules(text: &str) -> Result<Vec<Vec<Rule>>, TableError> {
    let at = |offset, message| {
        let (line, column) = position(text, offset);
        TableError { line, column, message }
    };
    let parsed: BTreeMap<Operation, Vec<Spanned<Rule>>> = toml::from_str(text)
        .map_err(|error| at(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let mut rules = vec![Vec::new(); Operation::ALL.len()];
    for (operation, list) in parsed {
        for rule in list {
            let start = rule.span().start;
            let rule = rule.into_inner();
            if let Some(message) = fault(operation, &rule) {
                return Err(at(start, message));
            }
            rules[operation as usize].push(rule);
        }
    }
    Ok(rules)
}

/// What is wrong with a rule for an operation.
fn fault(operation: Operation, rule: &Rule) -> Option<String> {
    let algorithm = rule.algorithm;
    if algorithm.program(operation).is_none() {
        let names: Vec<_> = Algorithm::of(operation).map(Algorithm::name).collect();
        let meant = did_you_mean(&algorithm.to_string(), names.iter().copied());
        let (operation, names) = (operation.key(), names.join(", "));
        return Some(format!("{operation} has no algorithm '{algorithm}'; {meant}it has {names}"));
    }
    if let Err(error) = rule.choice().check() {
        return Some(format!("{algorithm} with {error}"));
    }
    let bounds = [
        ("ranks", rule.min_ranks.into(), rule.max_ranks.into()),
        ("bytes", rule.min_bytes, rule.max_bytes),
        ("total", rule.min_total, rule.max_total),
    ];
    let (what, ..) = bounds.into_iter().find(|&(_, min, max): &(_, u64, u64)| min > max)?;
    Some(format!("a rule that never holds: min_{what} is above max_{what}"))
}

/// Line and column of a byte offset.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::Table;

    #[test]
    fn tables_that_ship_are_read_and_name_every_operation() {
        for name in Table::BUILTIN {
            let table = Table::builtin(name).unwrap_or_else(|| panic!("{name}"));
            for &operation in Operation::ALL {
                assert!(!table.rules(operation).is_empty(), "{name} has no rule for {operation}");
            }
        }
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| Table::from_toml(text).unwrap_err().to_string();
        assert_eq!(
            error("bcast = [\n  { algorithm = \"bruck\" },\n]"),
            "line 2, column 3: bcast has no algorithm 'bruck'; it has nothing, linear, binomial, binomial-spread, \
             knomial, chain, binary, split-binary, scatter-ring, scatter-doubling"
        );
        assert_eq!(
            error(
                "scan = [{ algorithm = \"linear\" }]\nbarrier = [{ min_ranks = 9, max_ranks = 8, algorithm = \"linear\" }]"
            ),
            "line 2, column 12: a rule that never holds: min_ranks is above max_ranks"
        );
        assert_eq!(
            error("allgather = [\n  { algorithm = \"ring-channels\", fanout = 4294967295 },\n]"),
            "line 2, column 3: ring-channels with 4294967295 channels: libraries have at most 128"
        );
        assert!(error("bcast = [\n\n  { algorithm = \"magic\" }]").starts_with("line 3, column "));
        assert!(error("bcast = [{ algorithm = \"linear\", colour = 3 }]").starts_with("line 1, column "));
        assert!(error("broadcast = []").starts_with("line 1, column "));
        assert!(error("bcast = [").starts_with("line 1, column "));
    }
}
