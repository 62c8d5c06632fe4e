//! The figures as files: the page's own scripts, run by an embedded engine.

use super::page::{FIGURES, PLOT};
use results::report::Simulated;
use results::simulation::Simulation;
use rquickjs::{CatchResultExt, Context, Function, Runtime};

const DOM: &str = include_str!("../../assets/dom.js");

/// Pixels from the left to the right of a picture.
const WIDTH: u32 = 900;
/// Stack of the engine, bytes: Plot recurses deeply.
const STACK: usize = 8 << 20;

/// Why there are no pictures.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The engine does not start.
    #[error("the script engine does not start: {0}")]
    Engine(#[from] rquickjs::Error),
    /// A figure's code fails.
    #[error("{figure}: {message}")]
    Figure {
        /// Which.
        figure: String,
        /// The script's error.
        message: String,
    },
}

/// The figures for which a report has data, by name, as SVG.
///
/// # Errors
/// None is known.
pub fn pictures(report: &str) -> Result<Vec<(String, String)>, PictureError> {
    in_engine(|| draw(report, "Object.keys(Figures.all)"))
}

/// The picture of a simulated network that has a drawing.
///
/// # Errors
/// None is known.
pub fn network_picture(result: Simulation) -> Result<String, PictureError> {
    let simulated = Simulated { result, ranks: None, utilisations: Vec::new() };
    // Nothing in it can fail: its keys are strings.
    let data = serde_json::to_string(&simulated).unwrap_or_default();
    let pictures = in_engine(|| draw(&format!("{{\"simulated\":{data}}}"), "['sim-topology']"))?;
    Ok(pictures.into_iter().map(|(_, svg)| svg).collect())
}

/// Runs in a thread of its own: the engine needs a stack of known size.
fn in_engine<T: Send>(run: impl FnOnce() -> Result<T, PictureError> + Send) -> Result<T, PictureError> {
    std::thread::scope(|scope| {
        let drawing = std::thread::Builder::new().stack_size(2 * STACK).spawn_scoped(scope, run);
        match drawing.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(drawn)) => drawn,
            _ => Err(rquickjs::Error::Unknown.into()),
        }
    })
}

/// Draws the figures that the expression `names` gives.
fn draw(json: &str, names: &str) -> Result<Vec<(String, String)>, PictureError> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK);
    Context::full(&runtime)?.with(|context| {
        let failed = |figure: &str, error: rquickjs::CaughtError<'_>| PictureError::Figure {
            figure: figure.to_owned(),
            message: error.to_string(),
        };
        for (name, script) in [("document", DOM), ("plot", PLOT), ("figures", FIGURES)] {
            context.eval::<(), _>(script).catch(&context).map_err(|error| failed(name, error))?;
        }
        let names: Vec<String> = context.eval(names)?;
        let parse: Function<'_> = context.eval("(text) => JSON.parse(text)")?;
        let data: rquickjs::Value<'_> = parse.call((json,))?;
        let file: Function<'_> = context.eval("(name, data, width) => drawFile(name, data, { width })")?;
        let mut pictures = Vec::new();
        for name in names {
            let drawn = file.call::<_, Option<String>>((name.as_str(), data.clone(), WIDTH)).catch(&context);
            if let Some(svg) = drawn.map_err(|error| failed(&name, error))? {
                pictures.push((name, vef_format::units::xml_text(svg)));
            }
        }
        Ok(pictures)
    })
}
