//! A browser that tests drive: headless Chromium by chromedriver, spoken to as WebDriver has it.
//!
//! A page is opened from its file as a person would; the pointer, the keyboard and the style of the system are those of the browser
//! itself, so that what is tested is what people get. Nothing is fetched from a network.

use crate::{have, skipped};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    /// What it prints: it would end if nobody took that.
    _output: Lines<BufReader<ChildStdout>>,
    port: u16,
    session: String,
    _profile: TempDir,
}

/// A key that has no character, as WebDriver numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Key {
    Tab = 0xe004,
    Enter = 0xe007,
    Space = 0xe00d,
    Left = 0xe012,
    Up = 0xe013,
    Right = 0xe014,
    Down = 0xe015,
    Home = 0xe011,
    End = 0xe010,
}

/// How long a page may take to do what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

impl Browser {
    /// Starts one with a window of `width` × `height`. `None` where there is no Chromium: the test is skipped.
    ///
    /// # Panics
    /// When it is there and does not start.
    pub fn start(width: u32, height: u32) -> Option<Self> {
        if !["chromium", "chromedriver"].iter().all(|program| have(program)) {
            skipped("no chromium and chromedriver (scripts/deps)");
            return None;
        }
        let profile = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().expect("chromedriver");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines();
        // "ChromeDriver was started successfully on port 43107."
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok())
            .expect("chromedriver says its port");
        let mut browser = Self { driver, _output: lines, port, session: String::new(), _profile: profile };
        let user_data = format!("--user-data-dir={}", browser._profile.path().display());
        let size = format!("--window-size={width},{height}");
        // Containers are often root and have little shared memory.
        let options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-device-scale-factor=1",
            &user_data,
            &size,
        ];
        let wanted = json!({
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": options},
        });
        let made = browser.ask("POST", "session", &json!({"capabilities": {"alwaysMatch": wanted}}));
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// Opens a file.
    pub fn open(&self, file: &Path) {
        let file = fs::canonicalize(file).expect("the page");
        self.post("url", &json!({"url": format!("file://{}", file.display())}));
    }

    /// What a function's body returns in the page; `arguments` are its arguments.
    pub fn run(&self, body: &str, arguments: &[Value]) -> Value {
        self.post("execute/sync", &json!({"script": body, "args": arguments}))
    }

    /// Waits until a function's body returns something true.
    ///
    /// # Panics
    /// When that takes too long.
    pub fn wait(&self, body: &str) -> Value {
        let began = Instant::now();
        loop {
            let value = self.run(body, &[]);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            assert!(began.elapsed() < PATIENCE, "never true: {body}\nconsole: {:?}", self.console());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Everything that the browser said of the page since it was last asked: errors of scripts, violations of the page's policy, what
    /// scripts log.
    pub fn console(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({"type": "browser"}));
        log.as_array().into_iter().flatten().map(Value::to_string).collect()
    }

    /// Moves the pointer to a place of the window.
    pub fn point(&self, x: f64, y: f64) {
        self.pointer(&[json!({"type": "pointerMove", "x": x as i64, "y": y as i64, "duration": 0})]);
    }

    /// Clicks at a place of the window.
    pub fn click(&self, x: f64, y: f64) {
        let moves = json!({"type": "pointerMove", "x": x as i64, "y": y as i64, "duration": 0});
        let [down, up] = ["pointerDown", "pointerUp"].map(|kind| json!({"type": kind, "button": 0}));
        self.pointer(&[moves, down, up]);
    }

    /// Draws with the pointer from one place of the window to another.
    pub fn drag(&self, from: [f64; 2], to: [f64; 2]) {
        let moves =
            |[x, y]: [f64; 2]| json!({"type": "pointerMove", "x": x as i64, "y": y as i64, "duration": 0});
        let [down, up] = ["pointerDown", "pointerUp"].map(|kind| json!({"type": kind, "button": 0}));
        self.pointer(&[moves(from), down, moves(to), up]);
    }

    /// Clicks on what a selector finds first, scrolled to where it is seen.
    ///
    /// # Panics
    /// When there is no such thing.
    pub fn click_on(&self, selector: &str) {
        let place = self.run(
            "const found = document.querySelector(arguments[0]); found.scrollIntoView({block: 'center'});
             const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]",
            &[json!(selector)],
        );
        let at = |place: &Value| place.as_f64().expect("a place");
        self.click(at(&place[0]), at(&place[1]));
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &[Key]) {
        let strokes: Vec<Value> = keys
            .iter()
            .flat_map(|&key| {
                let key = char::from_u32(key as u32).expect("a key").to_string();
                ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key}))
            })
            .collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": strokes}]}));
    }

    /// Has the system prefer dark colours, or light ones.
    pub fn prefer_dark(&self, dark: bool) {
        let scheme = json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        self.command("Emulation.setEmulatedMedia", &json!({"features": [scheme]}));
    }

    /// Shows the page as it is printed, or as on a screen.
    pub fn as_printed(&self, printed: bool) {
        self.command("Emulation.setEmulatedMedia", &json!({"media": if printed { "print" } else { "" }}));
    }

    /// The window's width.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// A picture of the whole page, as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let size = self.command("Page.getLayoutMetrics", &json!({}));
        let clip = json!({
            "x": 0, "y": 0, "scale": 1,
            "width": size["cssContentSize"]["width"], "height": size["cssContentSize"]["height"],
        });
        let taken =
            self.command("Page.captureScreenshot", &json!({"captureBeyondViewport": true, "clip": clip}));
        decode_base64(taken["data"].as_str().expect("a picture"))
    }

    /// The page on A4 paper, as PDF.
    pub fn pdf(&self) -> Vec<u8> {
        let paper = json!({"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": true});
        let printed = self.command("Page.printToPDF", &paper);
        decode_base64(printed["data"].as_str().expect("a document"))
    }

    fn pointer(&self, actions: &[Value]) {
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post("actions", &json!({"actions": [mouse]}));
    }

    /// One of the browser's own commands.
    fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.ask("POST", &format!("session/{}/{what}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        stream.set_read_timeout(Some(2 * PATIENCE)).expect("a limit");
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("a request");
        // The connection stays open behind the answer.
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("an answer of HTTP");
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("an answer");
        let answer: Value = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {head}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &format!("session/{}", self.session), &json!({}));
        }
        // Its browser ends with it.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0u32, |bits, &letter| bits << 6 | u32::from(value(letter)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decode_base64(text), bytes.as_bytes());
        }
        assert_eq!(decode_base64("/+7/"), [0xff, 0xee, 0xff]);
    }

    #[test]
    fn a_page_is_opened_and_used() {
        let Some(browser) = Browser::start(800, 600) else { return };
        let work = tempfile::tempdir().expect("a directory");
        let page = work.path().join("page.html");
        fs::write(
            &page,
            "<!doctype html><meta name=color-scheme content='light dark'><link rel=icon href='data:,'>
             <button onclick='this.textContent = \"pressed\"' onmouseover='this.title = \"seen\"'>press</button>
             <script>console.error('wrong')</script>",
        )
        .expect("a page");
        browser.open(&page);
        assert!(browser.console().iter().any(|line| line.contains("wrong")));
        assert_eq!(browser.console(), [""; 0]);
        browser.press(&[Key::Tab, Key::Enter]);
        browser.wait("return document.querySelector('button').textContent == 'pressed'");
        browser.point(20.0, 20.0);
        browser.wait("return document.querySelector('button').title == 'seen'");
        let is_dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
        assert_eq!(browser.run(is_dark, &[]), false);
        browser.prefer_dark(true);
        assert_eq!(browser.run(is_dark, &[]), true);
        assert_eq!(browser.picture()[1..4], *b"PNG");
        assert_eq!(browser.pdf()[..4], *b"%PDF");
    }
}
