//! What the page must do, seen in headless Chromium.
//!
//! On WebGPU (SwiftShader) each tab compares its results with Flex; without WebGPU the page falls
//! back to Flex. Nothing may be written to the console as a warning or an error.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    Result,
    browser::{Browser, WEBGPU},
    sample::dense,
    server,
};

/// Width of a screen, and of a phone.
const WIDTHS: [u32; 2] = [1280, 360];
const TABS: [&str; 3] = ["topk", "neighbors", "training"];
const LIMIT: Duration = Duration::from_secs(240);

/// Tests the page in `folder`; writes images into `shots`.
pub fn run(folder: &Path, shots: &Path) -> Result {
    fs::create_dir_all(shots).map_err(|e| format!("{}: {e}", shots.display()))?;
    let (address, _) = server::start(folder, 0)?;
    let url = format!("http://{address}/");
    let page = Page { browser: Browser::open(WEBGPU)?, url: url.clone() };
    page.open("", "WebGPU")?;
    page.seen(
        "opens on WebGPU",
        &page.browser.text("document.querySelector('#backend').textContent")?,
    );
    page.seen("shows its first result", &format!("{} ms after it was opened", page.first()?));
    page.selects()?;
    page.finds_neighbors()?;
    page.trains()?;
    page.is_used_by_keyboard()?;
    page.fits(shots)?;
    page.is_silent()?;
    drop(page);

    let page = Page { browser: Browser::open(&["--disable-gpu"])?, url };
    page.open("", "Flex")?;
    let about = page.browser.text("document.querySelector('#backend').textContent")?;
    if !about.starts_with("No WebGPU") {
        return Err(format!("the page does not say that it runs on Flex: {about}"));
    }
    page.seen("falls back to Flex", &about);
    page.seen("shows its first result", &format!("{} ms after it was opened", page.first()?));
    page.select_rows(&[10, 8, 16, 0])?;
    page.load_sample()?;
    page.train("karate", 16, 30)?;
    page.browser.screen(WIDTHS[0], false)?;
    page.browser.screenshot(&shots.join("flex-training-1280-light.png"))?;
    page.is_silent()?;
    println!("all checks of the page passed; images are in {}", shots.display());
    Ok(())
}

struct Page {
    browser: Browser,
    url: String,
}

impl Page {
    fn open(&self, query: &str, device: &str) -> Result {
        self.browser.go(&format!("{}{query}", self.url))?;
        let root = "document.documentElement.dataset.ready";
        let ended =
            format!("{root} || document.querySelector('#backend').dataset.backend == 'failed'");
        self.browser.wait(&ended, LIMIT)?;
        let ready = self.browser.text(root)?;
        if ready != device {
            let about = self.browser.text("document.querySelector('#backend').textContent")?;
            let complaints = self.browser.complaints()?.join("\n");
            return Err(format!("the page runs on {ready:?}, not {device}: {about}\n{complaints}"));
        }
        self.ended("topk").map(drop)
    }

    fn seen(&self, what: &str, detail: &str) {
        println!("ok  {what}: {detail}");
    }

    fn first(&self) -> Result<String> {
        self.browser.text("document.documentElement.dataset.first")
    }

    fn show(&self, tab: &str) -> Result {
        self.browser.click(&format!("#tab-{tab}"))
    }

    /// Waits for a tab's action, which must succeed; returns what it says.
    fn ended(&self, tab: &str) -> Result<String> {
        let panel = format!("document.querySelector('#panel-{tab}')");
        let state = format!("{panel}.dataset.state");
        self.browser.wait(&format!("['done', 'failed'].includes({state})"), LIMIT)?;
        let text = self.browser.text(&format!("{panel}.querySelector('.check').textContent"))?;
        match self.browser.text(&state)?.as_str() {
            "done" => Ok(text),
            _ => {
                let complaints = self.browser.complaints()?.join("\n");
                Err(format!("{tab}: {text}\n{complaints}"))
            }
        }
    }

    /// Sets inputs of a tab's form, without acting.
    fn set(&self, tab: &str, values: &[(&str, String)]) -> Result {
        let script = "const form = document.querySelector(`#panel-${arguments[0]} form`);
            for (const [name, value] of arguments[1]) {
              form.elements[name].value = value;
              form.elements[name].dispatchEvent(new Event('input', { bubbles: true }));
            }";
        self.browser.run(script, json!([tab, values])).map(drop)
    }

    /// Acts as a changed input does.
    fn change(&self, tab: &str, name: &str) -> Result<String> {
        let script = "document.querySelector(`#panel-${arguments[0]} form`).elements[arguments[1]]
            .dispatchEvent(new Event('change', { bubbles: true }))";
        self.browser.run(script, json!([tab, name]))?;
        self.ended(tab)
    }

    /// Exponents of rows and columns, k, iterations of early stop.
    fn select_rows(&self, &[rows, cols, k, stop]: &[u32; 4]) -> Result {
        let values = [("rows", rows), ("cols", cols), ("k", k), ("stop", stop)];
        self.set("topk", &values.map(|(name, value)| (name, value.to_string())))?;
        let said = self.change("topk", "k")?;
        let what = format!("top-k of 2^{rows} rows of 2^{cols}, k = {k}, early stop {stop}");
        self.seen(&what, &said);
        Ok(())
    }

    fn selects(&self) -> Result {
        let requests = [
            [10, 8, 16, 0],
            [10, 8, 16, 4],
            [4, 5, 1, 0],
            [6, 5, 32, 0],
            [8, 10, 64, 0],
            [8, 10, 200, 8],
            [12, 8, 32, 0],
            [4, 13, 100, 0],
            [4, 13, 100, 6],
        ];
        requests.iter().try_for_each(|request| self.select_rows(request))
    }

    fn load_sample(&self) -> Result {
        self.show("neighbors")?;
        self.browser.click("#panel-neighbors [name=sample]")?;
        let said = self.ended("neighbors")?;
        let caption = self
            .browser
            .text("document.querySelector('#panel-neighbors figcaption').textContent")?;
        self.seen("neighbors of the sample", &format!("{caption} {said}"));
        Ok(())
    }

    fn finds_neighbors(&self) -> Result {
        self.load_sample()?;
        let script =
            "return [...document.querySelector('#panel-neighbors form').elements.metric.options]
            .map((option) => option.value)";
        let metrics = self.browser.run(script, json!([]))?;
        let metrics = metrics.as_array().cloned().unwrap_or_default();
        if metrics.len() != 22 {
            return Err(format!("{} metrics instead of 22", metrics.len()));
        }
        for metric in metrics {
            let metric = metric.as_str().unwrap_or_default();
            self.set("neighbors", &[("metric", metric.to_string())])?;
            let said = self.change("neighbors", "metric")?;
            self.seen(&format!("neighbors, {metric}"), &said);
        }
        self.set("neighbors", &[("metric", "cosine".to_string()), ("k", "6".to_string())])?;
        self.change("neighbors", "k")?;
        let title = "document.querySelector('#panel-neighbors h2').textContent";
        let second = "#panel-neighbors li:nth-child(2) button";
        let name =
            self.browser.text(&format!("document.querySelector('{second} b').textContent"))?;
        self.browser.click(second)?;
        let selected = self.browser.text(title)?;
        if selected != name || name.is_empty() {
            return Err(format!("a click on {name} selects {selected}"));
        }
        self.seen("neighbors are clicked through", &selected);
        // A file of the user's: its rows have no names, and all distances are finite.
        let own = Temporary::new("dense", &dense(60, 12)?)?;
        self.browser.keys("#panel-neighbors [name=file]", &own.path())?;
        self.browser.wait(&format!("{title} == 'Row 1'"), LIMIT)?;
        let said = self.ended("neighbors")?;
        self.seen("neighbors of an uploaded file", &said);
        for metric in ["kl", "symmetric-kl", "jensen-shannon", "hellinger", "minkowski:3"] {
            self.set("neighbors", &[("metric", metric.to_string())])?;
            let said = self.change("neighbors", "metric")?;
            let nearest = self
                .browser
                .text(&format!("document.querySelector('{second} span').textContent"))?;
            if !nearest.parse::<f32>().is_ok_and(f32::is_finite) {
                return Err(format!("the second distance by {metric} is {nearest}"));
            }
            self.seen(&format!("neighbors in the file, {metric}"), &said);
        }
        let broken = Temporary::new("broken", b"PK nothing")?;
        self.browser.keys("#panel-neighbors [name=file]", &broken.path())?;
        self.seen("a broken file is refused", &self.ended_badly("neighbors")?);
        self.set("neighbors", &[("metric", "cosine".to_string())])?;
        self.load_sample()
    }

    fn ended_badly(&self, tab: &str) -> Result<String> {
        let panel = format!("document.querySelector('#panel-{tab}')");
        self.browser.wait(&format!("{panel}.dataset.state == 'failed'"), LIMIT)?;
        self.browser.text(&format!("{panel}.querySelector('.check').textContent"))
    }

    /// Trains; both models must classify the training nodes of the graph.
    fn train(&self, graph: &str, k: u32, epochs: u32) -> Result {
        self.show("training")?;
        let values =
            [("graph", graph.to_string()), ("k", k.to_string()), ("epochs", epochs.to_string())];
        self.set("training", &values)?;
        let script = "document.querySelector('#panel-training form').elements.graph
            .dispatchEvent(new Event('change'))";
        self.browser.run(script, json!([]))?;
        let start = Instant::now();
        self.browser.click("#panel-training [name=train]")?;
        let said = self.ended("training")?;
        let seconds = start.elapsed().as_secs_f64();
        let mut details = vec![said];
        for at in 0..2 {
            let caption = format!(
                "document.querySelectorAll('#panel-training figcaption span')[{at}].textContent"
            );
            let caption = self.browser.text(&caption)?;
            let accuracy =
                caption.split("training ").nth(1).and_then(|rest| rest.split(' ').next());
            let accuracy: f64 = accuracy.and_then(|text| text.parse().ok()).unwrap_or(0.0);
            if !caption.starts_with(&format!("epoch {epochs}:")) || accuracy < 90.0 {
                return Err(format!("training on {graph} ends with {caption}"));
            }
            details.push(caption);
        }
        self.seen(&format!("trains on {graph}, {seconds:.0} s"), &details.join("; "));
        Ok(())
    }

    fn trains(&self) -> Result {
        self.train("karate", 16, 30)?;
        // Stopped after some epochs.
        self.set("training", &[("epochs", "200".to_string())])?;
        self.browser.click("#panel-training [name=train]")?;
        let caption = "document.querySelector('#panel-training figcaption span').textContent";
        self.browser.wait(&format!("{caption}.startsWith('epoch 1')"), LIMIT)?;
        self.browser.click("#panel-training [name=stop]")?;
        self.ended("training")?;
        let caption = self.browser.text(caption)?;
        if caption.starts_with("epoch 200") {
            return Err("training does not stop".to_string());
        }
        self.seen("stops", &caption);
        self.train("blocks", 16, 20)
    }

    /// Arrows move between tabs, and between rows of the graph.
    fn is_used_by_keyboard(&self) -> Result {
        const RIGHT: &str = "\u{e014}";
        self.show("topk")?;
        let selected = "document.querySelector('[role=tab][aria-selected=true]').id";
        for tab in ["neighbors", "training", "topk"] {
            self.browser.keys("[role=tab][aria-selected=true]", RIGHT)?;
            let found = self.browser.text(selected)?;
            let hidden = format!("document.querySelector('#panel-{tab}').hidden");
            if found != format!("tab-{tab}") || self.browser.text(&hidden)? != "false" {
                return Err(format!("the arrow selects {found}, not {tab}"));
            }
        }
        self.show("neighbors")?;
        let title = "document.querySelector('#panel-neighbors h2').textContent";
        let before = self.browser.text(title)?;
        self.browser.keys("#panel-neighbors canvas", RIGHT)?;
        let after = self.browser.text(title)?;
        if before == after {
            return Err(format!("the arrow leaves {before} selected"));
        }
        self.seen("is used by keyboard", &format!("{before} → {after}"));
        Ok(())
    }

    /// No page scrolls sideways; writes an image of each tab.
    fn fits(&self, shots: &Path) -> Result {
        for width in WIDTHS {
            for dark in [false, true] {
                self.browser.screen(width, dark)?;
                for tab in TABS {
                    self.show(tab)?;
                    let scheme = if dark { "dark" } else { "light" };
                    // Canvases follow in the next frames.
                    std::thread::sleep(Duration::from_millis(400));
                    self.browser.screenshot(&shots.join(format!("{tab}-{width}-{scheme}.png")))?;
                    let found = self.browser.text("document.documentElement.scrollWidth")?;
                    if found.parse::<u32>().map_or(true, |found| found > width) {
                        return Err(format!("{tab} is {found} pixels wide on {width}"));
                    }
                }
            }
            self.seen("fits", &format!("{width} pixels, light and dark"));
        }
        Ok(())
    }

    /// Chromium itself warns that it has no adapter.
    fn is_silent(&self) -> Result {
        let mut complaints = self.browser.complaints()?;
        complaints.retain(|complaint| !complaint.ends_with("No available adapters."));
        match complaints.is_empty() {
            true => {
                self.seen("is silent", "no warning and no error in the console");
                Ok(())
            }
            false => Err(format!("the console says:\n{}", complaints.join("\n"))),
        }
    }
}

/// A file of this test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Result<Self> {
        let name = format!("sparsek-web-{name}-{}.npz", std::process::id());
        let file = env::temp_dir().join(name);
        fs::write(&file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self(file))
    }

    fn path(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
