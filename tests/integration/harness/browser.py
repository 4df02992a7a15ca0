"""A headless Chromium, driven by tests/browser/driver.js: browser.open(url), browser.click(selector="#pause")."""

import json
import subprocess

import hf

MODULES = hf.ROOT / ".deps" / "node_modules"
DRIVER = hf.ROOT / "tests" / "browser" / "driver.js"


class Browser:
    def __init__(self):
        self.process = subprocess.Popen(["node", DRIVER, MODULES], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __getattr__(self, call):
        return lambda **options: self.ask(call, options)

    def ask(self, call, options):
        self.process.stdin.write(json.dumps({"call": call, **options}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the browser ended at {call} {options}"
        answer = json.loads(line)
        assert "error" not in answer, f"{call} {options}: {answer['error']}"
        return answer["value"]

    def open(self, url, **options):
        return self.ask("open", {"url": url, **options})

    def text(self, selector):
        return " ".join(" ".join(self.texts(selector=selector)).split())

    def until(self, script, timeout=30):
        return self.ask("until", {"script": script, "timeout": timeout * 1000})

    def await_refreshes(self, times):
        """Until the page has shown so many newer snapshots."""
        for _ in range(times):
            number = self.evaluate(script="document.querySelector('#updated').dataset.number")
            self.until(f"document.querySelector('#updated').dataset.number !== '{number}'")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
