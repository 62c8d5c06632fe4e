//! The options of a simulated network, and those among them that have no effect.

use crate::output::Failure;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id, ValueEnum};
use sim_example::NetworkSettings;
use sim_example::model::{Carrier, GROUPS_HEADING, Model};
use sim_example::presets::{PRESETS, with_presets};
use sim_example::routing;
use sim_example::topology::{self, TopologySpec};
use sim_example::traffic::{PUBLISHED, Pattern};
use std::ffi::OsStr;

/// Topologies and routings, for `--help`; `places`: of a command that places ranks.
pub fn forms(places: bool) -> String {
    let topologies = topology::FORMS.iter().copied().flatten().map(|form| (form.form, form.help));
    let routings = routing::FORMS.iter().map(|form| (form.form, form.help));
    let lines = |title: &str, forms: &mut dyn Iterator<Item = (&str, &str)>| {
        let lines = forms.map(|(form, help)| format!("\n  {form}: {help}"));
        format!("{title}:{}", lines.collect::<String>())
    };
    let auto = places.then_some(("auto", "one switch with as many nodes as the placement needs"));
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.help));
    format!(
        "{}\n{}\n{}\ndocs/simulator.md has the formulas.",
        lines("Topologies", &mut auto.into_iter().chain(topologies)),
        lines("Routings", &mut routings.into_iter()),
        lines("Presets", &mut presets.into_iter())
    )
}

/// Traffic patterns and distributions of sizes, for `--help`.
pub fn patterns() -> String {
    let lines = |forms: &mut dyn Iterator<Item = (&str, &str)>| {
        forms.map(|(form, help)| format!("\n  {form}: {help}")).collect::<String>()
    };
    let patterns = lines(&mut Pattern::ALL.iter().map(|pattern| (pattern.info().name, pattern.info().help)));
    let sizes = lines(&mut PUBLISHED.iter().map(|known| (known.name, known.help)));
    format!("Patterns:{patterns}\nDistributions of sizes:{sizes}")
}

/// A network, and the options that were given for it.
#[derive(Clone, Debug)]
pub struct Network {
    pub settings: NetworkSettings,
    /// Those with other values than their defaults.
    given: Vec<NetworkOption>,
    /// Whether `--retransmit` is given without `--lossy`.
    retransmits_nothing: bool,
}

/// An option, with the heading that says which models use it; without, all do.
#[derive(Clone, Debug)]
struct NetworkOption {
    name: String,
    heading: Option<String>,
}

/// All options of a network, with their arguments.
fn options(mut of: impl FnMut(&clap::Arg) -> bool) -> Vec<NetworkOption> {
    let command = NetworkSettings::augment_args(Command::new("network"));
    let chosen = command.get_arguments().filter(|option| of(option));
    let named = |option: &clap::Arg| {
        let heading = option.get_help_heading().map(str::to_owned);
        Some(NetworkOption { name: format!("--{}", option.get_long()?), heading })
    };
    chosen.filter_map(named).collect()
}

impl FromArgMatches for Network {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let settings = NetworkSettings::from_arg_matches(matches)?;
        let is_given = |option: &clap::Arg| {
            let id = option.get_id().as_str();
            let default = option.get_default_values().iter().map(|value| value.as_os_str());
            // What a preset says may be given again, as a result has it.
            let of_preset =
                settings.preset.zip(option.get_long()).and_then(|(preset, name)| preset.value(name));
            let is_of_preset = |given: &OsStr| of_preset.is_some_and(|value| given == value);
            matches.value_source(id) == Some(ValueSource::CommandLine)
                && matches
                    .get_raw(id)
                    .is_none_or(|mut given| !given.clone().eq(default) && !given.all(is_of_preset))
        };
        let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let retransmits_nothing = is_typed("retransmit") && !is_typed("lossy");
        Ok(Self { given: options(is_given), settings: settings.clone(), retransmits_nothing })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Network {
    fn augment_args(command: Command) -> Command {
        with_presets(NetworkSettings::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_presets(NetworkSettings::augment_args_for_update(command))
    }
}

/// A network of which the model has links: for commands that have no ranks.
#[derive(Clone, Debug)]
pub struct LinkNetwork(Network);

impl std::ops::Deref for LinkNetwork {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.0
    }
}

impl FromArgMatches for LinkNetwork {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Network::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for LinkNetwork {
    fn augment_args(command: Command) -> Command {
        without_ranks(Network::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        without_ranks(Network::augment_args_for_update(command))
    }
}

/// Whether a model carries messages over links.
fn has_links(model: Model) -> bool {
    matches!(model.info().carrier, Carrier::Links(_))
}

/// Shows no model without links, and no option that such models alone use. Given, both are refused with the reason.
fn without_ranks(mut command: Command) -> Command {
    let is_unused = |heading: &str| {
        let of_heading = |model: &Model| {
            let options: &[&str] = model.info().options;
            options.contains(&heading)
        };
        let mut all = Model::ALL.into_iter().filter(of_heading).peekable();
        all.peek().is_some() && !all.any(has_links)
    };
    let unused = command.get_arguments().filter(|option| option.get_help_heading().is_some_and(is_unused));
    let unused: Vec<Id> = unused.map(|option| option.get_id().clone()).collect();
    for id in unused {
        command = command.mut_arg(id, |option| option.hide(true));
    }
    // No trace says how many nodes there are: the default is refused.
    let command = command.mut_arg("topology", |topology| topology.hide_default_value(true));
    command.mut_arg("model", |model| model.value_parser(OfLinks(EnumValueParser::new())))
}

/// Reads all models, and lists those with links.
#[derive(Clone)]
struct OfLinks(EnumValueParser<Model>);

impl TypedValueParser for OfLinks {
    type Value = Model;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Model, clap::Error> {
        self.0.parse_ref(command, argument, value).map_err(|mut error| {
            let shown = self.possible_values().into_iter().flatten();
            let names = shown.map(|value| value.get_name().to_owned()).collect();
            error.insert(ContextKind::ValidValue, ContextValue::Strings(names));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let shown = Model::ALL.into_iter().filter(|model| has_links(*model));
        Some(Box::new(shown.filter_map(|model| model.to_possible_value())))
    }
}

impl Network {
    /// The options that were given other values than their defaults, or are `swept` over several values, though the model, or the topology, does not
    /// use them.
    pub fn without_effect(&self, swept: &[&str]) -> Vec<String> {
        let is_concerned = |option: &NetworkOption| {
            swept.contains(&option.name.trim_start_matches('-'))
                || self.given.iter().any(|given| given.name == option.name)
        };
        let uses = self.settings.model.info().options;
        let has_effect = |heading: &str| {
            uses.contains(&heading) && (heading != GROUPS_HEADING || has_groups(&self.settings.topology))
        };
        let all = options(|_| true).into_iter().filter(is_concerned);
        all.filter(|option| option.heading.as_deref().is_some_and(|heading| !has_effect(heading)))
            .map(|option| option.name)
            .collect()
    }

    /// Refuses options without effect.
    pub fn all_have_effect(&self) -> Result<(), Failure> {
        let unused = self.without_effect(&[]);
        if unused.is_empty() {
            return self.retransmits();
        }
        let NetworkSettings { model, topology, .. } = &self.settings;
        let names = unused.join(", ");
        // Options of groups, where the model has links.
        let lacks_groups = options(|option| option.get_help_heading() == Some(GROUPS_HEADING));
        let is_of_groups = |name: &String| lacks_groups.iter().any(|option| option.name == *name);
        match unused.iter().all(is_of_groups) && model.info().options.contains(&GROUPS_HEADING) {
            true => Err(format!("{names}: no effect with --topology {topology}").into()),
            false => Err(format!("{names}: no effect with --model {model}").into()),
        }
    }

    /// Refuses `--retransmit` without `--lossy`, also with the value that it has by default. A result has both.
    pub fn retransmits(&self) -> Result<(), Failure> {
        match self.retransmits_nothing {
            true => Err("--retransmit needs --lossy".into()),
            false => Ok(()),
        }
    }
}

/// Whether a topology has global links.
fn has_groups(topology: &TopologySpec) -> bool {
    match topology {
        TopologySpec::Known(topology) => topology.switches_per_group().is_some(),
        TopologySpec::Auto | TopologySpec::File(_) => false,
    }
}
