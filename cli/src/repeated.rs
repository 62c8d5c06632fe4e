//! Runs of a result: its settings as they are written into it, and the command line that gives them again (`--again RESULT.json`).

use crate::output::Failure;
use crate::session;
use clap::parser::ValueSource;
use clap::{ArgAction, Args, Command};
use serde::Deserialize;
use sim_example::calibration::Calibration;
use sim_example::presets::Preset;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

/// Options by name, and arguments without one, with their values; a flag has `true`.
pub type Settings = BTreeMap<String, Vec<String>>;

/// The commands that write results with settings, and the beginning of the results' schema.
const COMMANDS: [(&str, &str); 2] = [("sim", "vef-sim/"), ("traffic", "vef-traffic/")];
/// Arguments that are no settings: they say where a result goes, or how many points run at once.
const NOT_SETTINGS: [&str; 10] =
    ["again", "sweep", "output", "jobs", "draw", "report", "timeline", "plot", "json", "csv"];

/// A result, as far as it is read here.
#[derive(Deserialize)]
struct Made {
    schema: String,
    #[serde(default)]
    settings: Settings,
}

/// Puts the settings of the result of `--again RESULT.json` in front of the other words, but for options that these have, too.
///
/// Arguments that are no options, traces, take the place of all that the result has. `arguments` has those of a command.
///
/// # Errors
/// The result cannot be read, or is of another command.
pub fn expanded(
    mut words: Vec<OsString>,
    arguments: impl FnOnce(&str) -> Option<Command>,
) -> Result<Vec<OsString>, String> {
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let Some(&(command, schema)) = COMMANDS.iter().find(|(name, _)| *name == command) else {
        return Ok(words);
    };
    let text = |word: &OsString| word.to_str().unwrap_or_default().to_owned();
    let given: Vec<String> = words.iter().map(text).collect();
    let value_of = |option: &str| {
        given.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(option) {
            Some("") => given.get(at + 1).cloned(),
            Some(value) => value.strip_prefix('=').map(str::to_owned),
            None => None,
        })
    };
    let Some(file) = value_of("--again") else { return Ok(words) };
    let wrong = |problem: &str| format!("error: --again {file}: {problem}");
    let about = fs::metadata(&file).map_err(|error| wrong(&error.to_string()))?;
    if !about.is_file() {
        return Err(wrong("not a file; it is read several times"));
    }
    let result = fs::read(&file).map_err(|error| wrong(&error.to_string()))?;
    let result: Made =
        serde_json::from_slice(&result).map_err(|error| wrong(&format!("not a result: {error}")))?;
    if !result.schema.starts_with(schema) || result.settings.is_empty() {
        return Err(wrong(&format!("not a result with settings, as vef {command} --json writes it")));
    }
    let is_given = |name: &str| {
        let option = format!("--{name}");
        given.iter().any(|word| *word == option || word.starts_with(&format!("{option}=")))
    };
    let preset = |name: &str| name.parse::<&Preset>().ok();
    let (before, now) = (result.settings.get("preset"), value_of("--preset"));
    let before = before.and_then(|values| preset(values.first()?));
    // A preset beside it says what its options are, and what those are not that the preset of the result had set.
    let is_of_preset = |name: &str, values: &[String]| {
        now.as_deref().is_some_and(|now| {
            preset(now).is_some_and(|now| now.value(name).is_some())
                || before.and_then(|before| before.value(name)).is_some_and(|value| values == [value])
        })
    };
    let known = arguments(command);
    let is_default = |name: &str, values: &[String]| {
        let options = known.iter().flat_map(Command::get_arguments);
        let defaults = options.filter(|option| option.get_long() == Some(name));
        defaults.flat_map(|option| option.get_default_values()).eq(values.iter().map(String::as_str))
    };
    // What a calibration beside the result of a run without one replaces.
    let is_calibrated = is_given("calibration") && !result.settings.contains_key("calibration");
    let is_calibrations = |name: &str, values: &[String]| {
        is_calibrated && Calibration::REPLACED.contains(&name) && is_default(name, values)
    };
    let has_traces = known.clone().is_some_and(|arguments| has_positional(arguments, &words[2..]));
    let mut settings = Vec::new();
    let is_replaced = |name: &str| has_traces && ["trace", "others"].contains(&name);
    let kept = |(name, values): &(&String, &Vec<String>)| {
        !is_given(name) && !is_of_preset(name, values) && !is_calibrations(name, values) && !is_replaced(name)
    };
    for (name, values) in result.settings.iter().filter(kept) {
        for value in values {
            match (name.as_str(), value.as_str()) {
                ("trace" | "others", value) => settings.push(value.into()),
                // A flag: no option has this value.
                (name, "true") => settings.push(format!("--{name}").into()),
                (name, value) => settings.push(format!("--{name}={value}").into()),
            }
        }
    }
    // The first trace comes first.
    settings.sort_by_key(|word: &OsString| {
        result
            .settings
            .get("trace")
            .is_none_or(|trace| trace.iter().all(|first| word.as_os_str() != first.as_str()))
    });
    words.splice(2..2, settings);
    Ok(words)
}

/// Whether there is an argument that is no option among the words of a command.
fn has_positional(arguments: Command, words: &[OsString]) -> bool {
    let command = arguments.no_binary_name(true).ignore_errors(true);
    let Ok(matches) = command.clone().try_get_matches_from(words) else { return false };
    let mut positional = command.get_arguments().filter(|argument| argument.is_positional());
    positional.any(|argument| matches.contains_id(argument.get_id().as_str()))
}

/// The long names of the options that this process's command line gives, or the result of its `--again`.
pub fn given<T: Args>() -> Result<Vec<String>, Failure> {
    let command = T::augment_args(Command::new("vef").args_override_self(true));
    let words = expanded(session::command_line(), |_| Some(command.clone()))?;
    let matches = command.clone().try_get_matches_from(words.iter().skip(1))?;
    let is_given = |option: &&clap::Arg| {
        matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let given = command.get_arguments().filter(is_given);
    Ok(given.filter_map(|option| option.get_long().map(str::to_owned)).collect())
}

/// All settings of this process's command line, defaults included, but for those that its calibration replaces.
pub fn settings<T: Args>() -> Result<Settings, Failure> {
    let command = T::augment_args(Command::new("vef").args_override_self(true));
    let words = expanded(session::command_line(), |_| Some(command.clone()))?;
    let matches = command.clone().try_get_matches_from(words.iter().skip(1))?;
    let has = |id: &str| {
        command.get_arguments().any(|argument| argument.get_id() == id)
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let is_calibrated = has("calibration");
    let mut settings = Settings::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let source = matches.value_source(id);
        if NOT_SETTINGS.contains(&id) || source.is_none() {
            continue;
        }
        // A default in place of which another option was given.
        let excludes = |other: &&clap::Arg| {
            matches.value_source(other.get_id().as_str()) == Some(ValueSource::CommandLine)
                && command
                    .get_arg_conflicts_with(other)
                    .iter()
                    .any(|excluded| excluded.get_id() == argument.get_id())
        };
        let name = argument.get_long().unwrap_or(id).to_owned();
        let is_replaced = || is_calibrated && Calibration::REPLACED.contains(&name.as_str());
        if source == Some(ValueSource::DefaultValue)
            && (is_replaced() || command.get_arguments().any(|other| excludes(&other)))
        {
            continue;
        }
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            if matches.get_flag(id) {
                settings.insert(name, vec!["true".to_owned()]);
            }
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        settings.insert(name, values);
    }
    // A drawing and a page need the record of all links, which the result then has, too.
    if has("draw") || has("report") {
        settings.insert("links".to_owned(), vec!["true".to_owned()]);
    }
    Ok(settings)
}
