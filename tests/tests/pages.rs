//! Reports in a browser: nothing on its console, every figure drawn and legible, what the pointer, the keyboard and sorting show is
//! what `--format json` says, dark and printed.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vef_tests::browser::{Browser, Key};
use vef_tests::{Mpi, number, root, run, vef};

/// One browser at a time: they are large.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A report of the capture that `vef demo` carries, and its data.
struct Page {
    file: PathBuf,
    data: Value,
    _work: tempfile::TempDir,
}

impl Page {
    fn new(words: &[&str]) -> Self {
        let work = tempfile::tempdir().expect("a directory");
        let vef = |words: &[&str]| run(vef().current_dir(work.path()).args(words)).success();
        let capture = root().join("cli/demo/capture").display().to_string();
        vef(&["mix", "-i", &capture, "-o", "halo.vefx"]);
        vef(&[&["report", "halo.vefx", "-o", "page.html"], words].concat());
        vef(&[&["report", "halo.vefx", "--format", "json", "-o", "data.json"], words].concat());
        let data = std::fs::read(work.path().join("data.json")).expect("data");
        let data = serde_json::from_slice(&data).expect("JSON");
        Self { file: work.path().join("page.html"), data, _work: work }
    }

    fn open(&self, browser: &Browser) {
        open(browser, &self.file);
    }

    /// What the matrix says of a cell, in words of the page.
    fn cell(&self, row: u64, column: u64) -> String {
        let matrix = &self.data["pairs"]["matrix"];
        let at = row * number(matrix, "rows") + column;
        let place = match matrix["cells"].as_array() {
            Some(cells) => cells.iter().position(|cell| cell.as_u64() == Some(at)),
            None => Some(at as usize),
        };
        let bytes = place.map_or(0, |place| matrix["bytes"][place].as_u64().expect("bytes"));
        format!("rank {row} → rank {column}: {bytes} B")
    }
}

fn open(browser: &Browser, page: &Path) {
    browser.open(page);
    browser.wait("return document.documentElement.dataset.drawn == 'yes'");
    assert_eq!(browser.console(), [""; 0]);
}

/// Text, with the blanks between groups of digits taken out.
fn plain(text: &Value) -> String {
    text.as_str().expect("text").replace(['\u{202f}', '\u{a0}'], "")
}

/// Where a cell of the matrix is in the window, scrolled to where it is seen.
const CELL: &str = "
    const svg = document.querySelector('figure[data-figure=matrix] svg');
    svg.scrollIntoView({block: 'center'});
    const box = svg.querySelector('image').getBoundingClientRect(), [row, column, rows] = arguments;
    return [box.x + (column + 0.5) / rows * box.width, box.y + (row + 0.5) / rows * box.height]";
const OUTPUT: &str = "return document.querySelector('figure[data-figure=matrix] output').textContent";

#[test]
fn figures_are_drawn_and_show_the_numbers_of_the_data() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let page = Page::new(&[]);
    page.open(&browser);
    // Each figure that has anything to show: a picture with marks, a caption, a name for those who do not see it.
    let figures = browser.run(
        "return [...document.querySelectorAll('figure[data-figure]')].filter(figure => !figure.hidden).map(figure => ({
           name: figure.dataset.figure, caption: figure.querySelector('figcaption').textContent.length,
           label: figure.querySelector('[role=img]')?.getAttribute('aria-label')?.length ?? 0,
           marks: figure.querySelectorAll('svg path, svg rect, svg image, svg line, svg circle').length,
           width: figure.querySelector('svg')?.getBoundingClientRect().width ?? 0,
         }))",
        &[],
    );
    let figures = figures.as_array().expect("figures");
    for name in [
        "over-time",
        "states",
        "rank-time",
        "matrix",
        "sent",
        "received",
        "partners",
        "distances",
        "sizes",
        "collectives",
        "ranks",
        "in-flight",
        "of-sender",
    ] {
        assert!(figures.iter().any(|figure| figure["name"] == name), "{name} is missing: {figures:?}");
    }
    for figure in figures {
        for least in [("caption", 20), ("label", 20), ("marks", 2), ("width", 200)] {
            assert!(figure[least.0].as_f64().expect("a number") >= f64::from(least.1), "{least:?}: {figure}");
        }
    }
    // The pointer shows what the data say.
    let rows = number(&page.data["pairs"]["matrix"], "rows");
    let mut seen = Vec::new();
    for (row, column) in (0..rows).flat_map(|row| (0..rows).map(move |column| (row, column))) {
        let place = browser.run(CELL, &[json!(row), json!(column), json!(rows)]);
        browser.point(place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
        seen.push(plain(&browser.run(OUTPUT, &[])));
        assert_eq!(*seen.last().expect("a cell"), page.cell(row, column));
    }
    assert!(seen.iter().any(|cell| !cell.ends_with(" 0 B")), "{seen:?}");
    // So do the arrow keys, reached by Tab alone.
    browser.run("document.querySelector('figure[data-figure=matrix] select').focus()", &[]);
    for _ in 0..8 {
        let there = "return document.activeElement.matches('figure[data-figure=matrix] .picture')";
        if browser.run(there, &[]) == true {
            break;
        }
        browser.press(&[Key::Tab]);
    }
    let last = rows - 1;
    browser.press(&[Key::Up; 64][..rows as usize]);
    browser.press(&[Key::Left; 64][..rows as usize]);
    assert_eq!(plain(&browser.run(OUTPUT, &[])), page.cell(0, 0));
    browser.press(&[Key::Right, Key::Down, Key::Right]);
    assert_eq!(plain(&browser.run(OUTPUT, &[])), page.cell(1.min(last), 2.min(last)));
    assert_eq!(browser.console(), [""; 0]);
}

/// The window of time that each figure over time shows, in picoseconds.
const WINDOWS: &str = "
    return [...document.querySelectorAll('figure:not([hidden]) svg[data-time]')].map(svg => svg.dataset.time.split(' ').map(Number).slice(2))";

#[test]
fn a_part_of_the_run_is_chosen_with_the_pointer_or_typed() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let page = Page::new(&[]);
    page.open(&browser);
    let runtime = page.data["replayed"]["runtime_ps"].as_f64().expect("a time");
    let step = page.data["replayed"]["rank_time"]["bin_ps"].as_f64().expect("a time");
    // All figures show the same window; the picture of cells whole steps of it.
    let shown = |from: f64, to: f64, within: f64| {
        let windows = browser.run(WINDOWS, &[]);
        let windows = windows.as_array().expect("windows");
        assert_eq!(windows.len(), 4, "{windows:?}");
        for window in windows {
            let [own_from, own_to] = [0, 1].map(|at| window[at].as_f64().expect("a time"));
            assert!(
                (own_from - from).abs() <= within && (own_to - to).abs() <= within,
                "{windows:?}, not {from} to {to}"
            );
        }
    };
    shown(0.0, runtime, step);
    let place = browser.run(
        "const svg = document.querySelector('figure[data-figure=states] svg');
         svg.scrollIntoView({block: 'center'});
         const box = svg.getBoundingClientRect(), [left, right] = svg.dataset.time.split(' ').map(Number);
         return [box.x + left, box.x + right, box.y + box.height / 2]",
        &[],
    );
    let [left, right, y] = [0, 1, 2].map(|at| place[at].as_f64().expect("a place"));
    let at = |share: f64| [left + share * (right - left), y];
    browser.drag(at(0.75), at(0.5));
    shown(0.5 * runtime, 0.75 * runtime, step + 2.0 * runtime / (right - left));
    let typed = "const field = document.querySelector(`#zoom [name=${arguments[0]}]`);
                 field.value = Number(field.value) * arguments[1]; field.dispatchEvent(new Event('change')); return field.value";
    let before = browser.run(WINDOWS, &[])[0][0].as_f64().expect("a time");
    browser.run(typed, &[json!("from"), json!(1.2)]);
    let after = browser.run(WINDOWS, &[])[0][0].as_f64().expect("a time");
    assert!((after / before - 1.2).abs() < 1e-3, "{before} {after}");
    assert_eq!(browser.run(CROWDED, &[]), json!([]));
    browser.click_on("#zoom button");
    shown(0.0, runtime, step);
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn tables_are_sorted_by_their_heads() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let page = Page::new(&[]);
    page.open(&browser);
    let tables = browser.run(
        "return [...document.querySelectorAll('table')].map((table, at) => {
           table.dataset.at = at; return table.querySelectorAll('th button').length })",
        &[],
    );
    let column = "
        const [at, column] = arguments, table = document.querySelector(`table[data-at='${at}']`);
        const cell = row => row.children[column].dataset.value ?? row.children[column].textContent;
        return {sort: table.querySelectorAll('th')[column].getAttribute('aria-sort'),
                sorted: table.querySelectorAll('th[aria-sort]').length, cells: [...table.tBodies[0].rows].map(cell)}";
    let mut columns = 0;
    for (at, heads) in tables.as_array().expect("tables").iter().enumerate() {
        for head in 0..heads.as_u64().expect("a number") {
            let arguments = [json!(at), json!(head)];
            let before = browser.run(column, &arguments);
            let mut orders = Vec::new();
            for (click, wanted) in ["descending", "ascending"].into_iter().enumerate() {
                let button = format!("table[data-at='{at}'] th:nth-child({}) button", head + 1);
                match click {
                    0 => browser.click_on(&button),
                    // By the keyboard, too.
                    _ => {
                        browser.run("document.querySelector(arguments[0]).focus()", &[json!(button)]);
                        browser.press(&[Key::Enter]);
                    }
                }
                let after = browser.run(column, &arguments);
                assert_eq!((&after["sort"], &after["sorted"]), (&json!(wanted), &json!(1)), "{button}");
                let cells: Vec<String> =
                    after["cells"].as_array().expect("cells").iter().map(plain).collect();
                let numbers: Option<Vec<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
                if let Some(numbers) = numbers {
                    columns += 1;
                    let rising = |pair: &[f64]| {
                        if wanted == "ascending" { pair[0] <= pair[1] } else { pair[0] >= pair[1] }
                    };
                    assert!(numbers.windows(2).all(rising), "{button} {wanted}: {numbers:?}");
                }
                let mut sorted = cells.clone();
                sorted.sort();
                orders.push(sorted);
            }
            let mut all: Vec<String> = before["cells"].as_array().expect("cells").iter().map(plain).collect();
            all.sort();
            assert_eq!(orders, [all.clone(), all], "no row is lost");
        }
    }
    assert!(columns >= 10, "{columns} columns of numbers");
    assert_eq!(browser.console(), [""; 0]);
}

/// The contrast of text and ground, as WCAG 2 computes it, of everything with text of its own outside figures; the least, and whose.
const CONTRAST: &str = "
    const light = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number)
        .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b };
    const ground = element => { for (; element; element = element.parentElement) {
        const colour = getComputedStyle(element).backgroundColor; if (!/, 0\\)$/.test(colour)) return colour }
        return 'rgb(255, 255, 255)' };
    let least = [99, ''];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim());
        if (!own || !element.checkVisibility() || element.closest('script, style')) continue;
        const style = getComputedStyle(element);
        const ink = element.closest('svg') ? (style.fill == 'none' ? style.color : style.fill) : style.color;
        if (!ink.startsWith('rgb')) continue;
        const [a, b] = [light(ink), light(ground(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < least[0]) least = [contrast, element.tagName + ' ' + element.className + ' ' + element.textContent.slice(0, 40)];
    }
    return [...least, light(ground(document.body))]";

/// Texts of a picture that lie on one another, and texts beyond its edge.
const CROWDED: &str = "
    const found = [];
    for (const svg of document.querySelectorAll('figure:not([hidden]) svg')) {
        const frame = svg.getBoundingClientRect(), name = svg.closest('figure').dataset.figure;
        for (const text of svg.querySelectorAll('text')) {
            const box = text.getBoundingClientRect();
            if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1))
                found.push(`${name}: ${text.textContent} is cut off`);
        }
        const texts = [...svg.querySelectorAll('text')].filter(text => text.textContent.trim() && !/rotate\\((?!0)/.test(text.getAttribute('transform') ?? ''));
        const boxes = texts.map(text => text.getBoundingClientRect());
        boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other, after) => {
            if (one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom - 2 && other.top < one.bottom - 2)
                found.push(`${name}: ${texts[at].textContent} lies on ${texts[at + 1 + after].textContent}`);
        }));
    }
    return found";

#[test]
fn it_is_legible_in_the_light_in_the_dark_and_on_paper() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let page = Page::new(&[]);
    for dark in [false, true] {
        browser.prefer_dark(dark);
        page.open(&browser);
        let contrast = browser.run(CONTRAST, &[]);
        assert!(contrast[0].as_f64().expect("a contrast") >= 4.5, "{contrast}");
        let ground = contrast[2].as_f64().expect("a lightness");
        assert!(if dark { ground < 0.1 } else { ground > 0.9 }, "{dark}: {contrast}");
        assert_eq!(browser.run(CROWDED, &[]), json!([]));
        // The button turns it round.
        browser.click_on("#theme");
        let turned = browser.run(CONTRAST, &[])[2].as_f64().expect("a lightness");
        assert!(if dark { turned > 0.9 } else { turned < 0.1 }, "{dark}: {turned}");
    }
    // In a narrow window nothing is wider than that but what scrolls by itself.
    browser.prefer_dark(false);
    browser.resize(600, 800);
    page.open(&browser);
    let wide = browser.run("return document.documentElement.scrollWidth", &[]);
    assert!(wide.as_f64().expect("a width") <= 600.0, "{wide}");
    // On paper: light, nothing to click at, and no picture wider than the paper.
    browser.prefer_dark(true);
    browser.resize(700, 1000);
    browser.as_printed(true);
    let printed = browser.run(
        "dispatchEvent(new Event('beforeprint'));
         const wide = [...document.querySelectorAll('figure:not([hidden]) svg')].filter(svg => svg.getBoundingClientRect().right > 701);
         const small = [...document.querySelectorAll('figure:not([hidden]) svg')].filter(svg => svg.getBoundingClientRect().width < Number(svg.getAttribute('width')) * 0.8);
         wide.push(...[...document.querySelectorAll('table')].filter(table => table.getBoundingClientRect().right > 701));
         // Buttons are missing in the heads that Chromium repeats on further pages.
         const heads = [...document.querySelectorAll('th button')].filter(button => getComputedStyle(button).display != 'contents');
         return {wide: wide.length, small: small.length, heads: heads.length, buttons: [...document.querySelectorAll('nav, select, button:not(th button), input')].filter(e => e.checkVisibility()).length}",
        &[],
    );
    assert_eq!(printed, json!({"wide": 0, "small": 0, "heads": 0, "buttons": 0}));
    let pdf = browser.pdf();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000);
    assert_eq!(browser.console(), [""; 0]);
}

/// Few ranks are named one by one, as are the parts of a small network: all of it has room.
#[test]
fn names_of_ranks_and_links_do_not_lie_on_one_another() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let work = tempfile::tempdir().expect("a directory");
    let vef = |words: &[&str]| run(vef().current_dir(work.path()).args(words)).success();
    for (ranks, topology) in [("2", "torus:2"), ("8", "torus:2x2x2"), ("24", "fattree:k=6")] {
        vef(&["gen", "halo2d", "-n", ranks, "-o", "t.vefx", "--iterations", "5"]);
        let simulated = vef(&["sim", "t.vefx", "--topology", topology, "--links", "--json"]).stdout();
        std::fs::write(work.path().join("sim.json"), simulated).expect("a file");
        vef(&["report", "t.vefx", "--sim", "sim.json", "--against", "t.vefx", "-o", "page.html"]);
        open(&browser, &work.path().join("page.html"));
        let shown = "return [...document.querySelectorAll('figure:not([hidden])')].map(figure => figure.dataset.figure)";
        let shown = browser.run(shown, &[]);
        for name in ["rank-time", "sim-topology", "sim-link-time", "against-sizes"] {
            assert!(shown.as_array().expect("names").contains(&json!(name)), "{name}: {shown}");
        }
        assert_eq!(browser.run(CROWDED, &[]), json!([]), "{ranks} ranks");
    }
}

/// Where a row is a group of ranks it shows their mean: the last group, of a single rank, is as high as the others.
#[test]
fn a_group_of_ranks_is_shown_by_its_mean() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let work = tempfile::tempdir().expect("a directory");
    let mut text = "VEF3 257 257 0 0 0 0 1000\n".to_owned();
    (0..257).for_each(|rank| text += &format!("{rank} {rank} {} 1000 0 1000 -1\n", (rank + 1) % 257));
    std::fs::write(work.path().join("t.vef"), text).expect("a trace");
    run(vef().current_dir(work.path()).args(["report", "t.vef", "-o", "page.html"])).success();
    open(&browser, &work.path().join("page.html"));
    let widths = browser.run(
        "return [...document.querySelectorAll('figure[data-figure=rank-time] g[aria-label=bar] rect')].map(bar => bar.getAttribute('width'))",
        &[],
    );
    let widths = widths.as_array().expect("widths");
    assert!(widths.len() == 129 && widths.iter().all(|width| *width == widths[0]), "{widths:?}");
    let caption = browser
        .run("return document.querySelector('figure[data-figure=rank-time] figcaption').textContent", &[]);
    assert!(
        caption.as_str().expect("text").contains("2 neighbouring ranks are shown by their mean"),
        "{caption}"
    );
}

/// A point of the lower figure of sizes is the share of the bytes in messages smaller than the size that its tick names.
#[test]
fn shares_of_bytes_stand_at_the_sizes_that_bound_them() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    let work = tempfile::tempdir().expect("a directory");
    let text =
        "VEF3 2 4 0 0 0 0 1000\n0 0 1 0 4 0 -1\n1 0 1 1000 4 0 -1\n2 0 1 1024 4 0 -1\n3 0 1 1976 4 0 -1\n";
    std::fs::write(work.path().join("t.vef"), text).expect("a trace");
    run(vef().current_dir(work.path()).args(["report", "t.vef", "-o", "page.html"])).success();
    open(&browser, &work.path().join("page.html"));
    let points = browser.run(
        "const middle = element => { const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] };
         const figure = document.querySelector('figure[data-figure=sizes]'), dots = [...figure.querySelectorAll('circle')];
         const ticks = [...figure.querySelectorAll('g[aria-label$=\"tick label\"] text')].map(text => [text.textContent, ...middle(text)]);
         const at = name => ticks.find(([text]) => text == name)[2];
         return dots.map(dot => { const [x, y] = middle(dot);
             const below = ticks.filter(([, , tick]) => tick > at('0 %') + 8).sort((a, b) => Math.abs(a[1] - x) - Math.abs(b[1] - x))[0];
             return [below[0], Math.round(100 * (at('0 %') - y) / (at('0 %') - at('100 %')))] })",
        &[],
    );
    assert_eq!(points, json!([["1 B", 0], ["1 KiB", 25], ["2 KiB", 100]]));
    let step = browser.run("return document.querySelector('figure[data-figure=rank-time]').textContent", &[]);
    assert!(step.as_str().expect("text").contains("in steps of "), "{step}");
}

#[test]
fn a_figure_that_fails_leaves_the_others() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let _turn = turn();
    Page::new(&[]).open(&browser);
    let seen = browser.run(
        "Figures.all.sizes.draw = () => { throw new Error('on purpose') };
         const matrix = document.querySelector('figure[data-figure=matrix] .picture');
         matrix.replaceChildren();
         dispatchEvent(new Event('beforeprint'));
         return [document.querySelector('figure[data-figure=sizes] .picture').textContent, matrix.querySelectorAll('svg').length > 0]",
        &[],
    );
    assert_eq!(seen, json!(["This figure cannot be drawn: on purpose", true]));
    let console = browser.console();
    assert!(console.len() == 1 && console[0].contains("on purpose"), "{console:?}");
}

#[test]
fn what_a_program_is_called_runs_nowhere() {
    let Some(browser) = Browser::start(1280, 800) else { return };
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), "phases", &["tests/c/phases.c"]).display().to_string();
    const EVIL: &str = "</script><script>document.title = 'run'//\"'&";
    let mpirun = mpi.launcher().join(" ");
    let words =
        ["run", "--mpirun", &mpirun, "-n", "2", "-o", "capture", "--mix", "evil.vefx", "--", &program, EVIL];
    run(vef().current_dir(work.path()).args(words)).success();
    run(vef().current_dir(work.path()).args(["report", "evil.vefx", "-o", "evil.html"])).success();
    let _turn = turn();
    open(&browser, &work.path().join("evil.html"));
    assert_ne!(browser.run("return document.title", &[]), "run");
    let text = browser.run("return document.body.innerText", &[]);
    assert!(text.as_str().expect("text").contains(EVIL), "{text}");
}
