//! Settings of networks that are common, by name: values of options that are not given. `docs/simulator.md` has the source of each.

use std::fmt;
use std::str::FromStr;

use clap::Command;
use vef_format::nearest::did_you_mean;

/// Settings of a common network.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The network.
    pub help: &'static str,
    /// Names of options with their values.
    pub values: &'static [(&'static str, &'static str)],
}

/// All presets, in the order of the documentation.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "hdr",
        help: "InfiniBand HDR, 200 Gbit/s",
        values: &[
            ("bandwidth", "200Gbit/s"),
            ("latency", "25ns"),
            ("switch-delay", "130ns"),
            ("packet-size", "4KiB"),
            ("packet-header", "26B"),
        ],
    },
    Preset {
        name: "ndr",
        help: "InfiniBand NDR, 400 Gbit/s",
        values: &[
            ("bandwidth", "400Gbit/s"),
            ("latency", "25ns"),
            ("switch-delay", "130ns"),
            ("packet-size", "4KiB"),
            ("packet-header", "26B"),
        ],
    },
    Preset {
        name: "slingshot",
        help: "Slingshot 11, 200 Gbit/s",
        values: &[
            ("bandwidth", "200Gbit/s"),
            ("latency", "25ns"),
            ("global-latency", "250ns"),
            ("switch-delay", "350ns"),
        ],
    },
    Preset {
        name: "roce100",
        help: "RoCE v2 on Ethernet of 100 Gbit/s",
        values: &[
            ("bandwidth", "100Gbit/s"),
            ("latency", "25ns"),
            ("switch-delay", "300ns"),
            ("packet-size", "4KiB"),
            ("packet-header", "82B"),
        ],
    },
    Preset {
        name: "roce400",
        help: "RoCE v2 on Ethernet of 400 Gbit/s",
        values: &[
            ("bandwidth", "400Gbit/s"),
            ("latency", "25ns"),
            ("switch-delay", "300ns"),
            ("packet-size", "4KiB"),
            ("packet-header", "82B"),
        ],
    },
    Preset {
        name: "cloud",
        help: "a cloud's network of 100 Gbit/s (such as EFA)",
        values: &[("bandwidth", "100Gbit/s"), ("latency", "7.75us"), ("packet-size", "8KiB")],
    },
];

impl Preset {
    /// The value of an option, by the name behind `--`.
    pub fn value(&self, option: &str) -> Option<&'static str> {
        self.values.iter().find(|(name, _)| *name == option).map(|(_, value)| *value)
    }
}

/// A command with the options of a network, in which `--preset` gives options their values.
pub fn with_presets(mut command: Command) -> Command {
    let named = |arg: &clap::Arg| Some((arg.get_id().clone(), arg.get_long()?.to_owned()));
    let options: Vec<_> = command.get_arguments().filter_map(named).collect();
    for (id, option) in options {
        let values =
            PRESETS.iter().filter_map(|preset| Some(("preset", preset.name, preset.value(&option)?)));
        let values: Vec<_> = values.collect();
        if !values.is_empty() {
            command = command.mut_arg(id, |arg| {
                values
                    .iter()
                    .fold(arg, |arg, &(preset, name, value)| arg.default_value_if(preset, name, value))
            });
        }
    }
    command
}

/// No preset has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset; {}write {}", did_you_mean(.0, names()), names().collect::<Vec<_>>().join(", "))]
pub struct UnknownPreset(pub String);

fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

impl FromStr for &'static Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        PRESETS.iter().find(|preset| preset.name == text).ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NetworkSettings;
    use clap::{Args, FromArgMatches};

    fn parsed(words: &[&str]) -> NetworkSettings {
        let command = with_presets(NetworkSettings::augment_args(Command::new("sim")));
        let matches = command.get_matches_from(["sim"].iter().chain(words));
        NetworkSettings::from_arg_matches(&matches).unwrap()
    }

    /// Every value is one of an option, and given options take precedence.
    #[test]
    fn presets_are_values_of_options() {
        for preset in PRESETS {
            let settings = parsed(&["--preset", preset.name]);
            let mut words = Vec::new();
            for (option, value) in preset.values {
                words.push(format!("--{option}"));
                words.push((*value).to_owned());
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let given = NetworkSettings { preset: Some(preset), ..parsed(&words) };
            assert_eq!(format!("{settings:?}"), format!("{given:?}"), "{preset}");
        }
        let settings = parsed(&["--preset", "ndr", "--bandwidth", "100Gbit/s"]);
        assert_eq!(settings.links.bandwidth.bits_per_second(), 100_000_000_000);
        assert_eq!(settings.packet.size.0, 4096);
        assert_eq!(parsed(&[]).packet.size.0, 2048);
        assert!("edr".parse::<&Preset>().unwrap_err().to_string().contains("write hdr, ndr"));
    }
}
