//! A headless Chromium, driven by WebDriver: HTTP and JSON.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use ureq::Agent;

use crate::Result;

const CHROMEDRIVER: &str = "chromedriver";

/// WebGPU in software, which no display and no GPU is needed for.
pub const WEBGPU: &[&str] = &["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/// A browser with one page. Closes with its value.
pub struct Browser {
    driver: Child,
    agent: Agent,
    session: String,
}

impl Browser {
    /// Starts chromedriver and Chromium with `arguments`.
    pub fn open(arguments: &[&str]) -> Result<Self> {
        let mut driver = Command::new(CHROMEDRIVER)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{CHROMEDRIVER}: {e}"))?;
        let output = driver.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // Reads on, so that the driver never waits for a full pipe.
        thread::spawn(move || lines.for_each(drop));
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(300)))
            .build()
            .into();
        let mut browser = Self { driver, agent, session: String::new() };
        let port = port.ok_or("chromedriver names no port")?;
        let base = format!("http://127.0.0.1:{port}/session");
        let always = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"];
        let arguments: Vec<&str> = always.iter().chain(arguments).copied().collect();
        browser.session.clone_from(&base);
        let found = browser.post(
            "",
            &json!({ "capabilities": { "alwaysMatch": {
                "goog:chromeOptions": { "args": arguments },
                "goog:loggingPrefs": { "browser": "ALL" },
            } } }),
        )?;
        let id = found["sessionId"].as_str().ok_or("chromedriver opens no session")?;
        browser.session = format!("{base}/{id}");
        Ok(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("{}{path}", self.session);
        let sent = self.agent.post(&url).send_json(body);
        let mut response = sent.map_err(|e| format!("{path}: {e}"))?;
        let answer = response.body_mut().with_config().limit(64 << 20).read_json::<Value>();
        let mut answer = answer.map_err(|e| format!("{path}: {e}"))?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{path}: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].take()),
        }
    }

    /// Opens an address.
    pub fn go(&self, url: &str) -> Result {
        self.post("/url", &json!({ "url": url })).map(drop)
    }

    /// Runs JavaScript, with `arguments` as `arguments[0]` and so on; returns what it returns.
    pub fn run(&self, script: &str, arguments: Value) -> Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Text of an expression, empty if it has none.
    pub fn text(&self, expression: &str) -> Result<String> {
        let value = self.run(&format!("return {expression}"), json!([]))?;
        Ok(match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        })
    }

    /// Waits until an expression is true.
    pub fn wait(&self, expression: &str, limit: Duration) -> Result {
        let start = Instant::now();
        loop {
            if self.run(&format!("return Boolean({expression})"), json!([]))? == json!(true) {
                return Ok(());
            }
            if start.elapsed() > limit {
                return Err(format!("{expression} is not true after {} s", limit.as_secs()));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Types into an element, or gives a file to an input.
    pub fn keys(&self, selector: &str, text: &str) -> Result {
        let found = json!({ "using": "css selector", "value": selector });
        let element = self.post("/element", &found)?;
        let id = element.as_object().and_then(|element| element.values().next());
        let id = id.and_then(Value::as_str).ok_or_else(|| format!("{selector}: no element"))?;
        self.post(&format!("/element/{id}/value"), &json!({ "text": text })).map(drop)
    }

    /// Clicks an element as a user does.
    pub fn click(&self, selector: &str) -> Result {
        let found = json!({ "using": "css selector", "value": selector });
        let element = self.post("/element", &found)?;
        let id = element.as_object().and_then(|element| element.values().next());
        let id = id.and_then(Value::as_str).ok_or_else(|| format!("{selector}: no element"))?;
        self.post(&format!("/element/{id}/click"), &json!({})).map(drop)
    }

    /// Sends a command of Chromium's own protocol.
    fn command(&self, name: &str, parameters: Value) -> Result<Value> {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Pretends a screen: width in pixels, and the color scheme.
    pub fn screen(&self, width: u32, dark: bool) -> Result {
        let phone = width < 600;
        let height = if phone { 780 } else { 900 };
        let scale = if phone { 2 } else { 1 };
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone,
        });
        self.command("Emulation.setDeviceMetricsOverride", size)?;
        let value = if dark { "dark" } else { "light" };
        let scheme = json!({ "name": "prefers-color-scheme", "value": value });
        self.command("Emulation.setEmulatedMedia", json!({ "features": [scheme] })).map(drop)
    }

    /// Writes an image of the whole page.
    pub fn screenshot(&self, file: &Path) -> Result {
        let whole = json!({ "captureBeyondViewport": true });
        let image = self.command("Page.captureScreenshot", whole)?;
        let image = image["data"].as_str().ok_or("no screenshot")?;
        let bytes = decode(image).ok_or("a broken screenshot")?;
        fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))
    }

    /// Warnings and errors of the console.
    pub fn complaints(&self) -> Result<Vec<String>> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }))?;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let bad = entries
            .into_iter()
            .filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        Ok(bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_string()).collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes Chromium, which outlives its driver.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for c in text.bytes().filter(|&c| c != b'=') {
        bits = (bits << 6) | u32::from(digit(c)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::decode;

    #[rstest]
    #[case("", Some(""))]
    #[case("Zg==", Some("f"))]
    #[case("Zm8=", Some("fo"))]
    #[case("Zm9vYmFy", Some("foobar"))]
    #[case("Zm9v!", None)]
    fn base64_is_read(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(decode(text), expected.map(|text| text.as_bytes().to_vec()));
    }
}
