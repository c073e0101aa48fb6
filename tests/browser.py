"""A real browser, driven by WebDriver: Debian's chromium and chromium-driver."""

import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from program import free_port

# Without these it looks for its maker's servers at every start; as root it has no sandbox.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"]


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="accordion-browser-")
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.ask("GET", "/status")
                break
            except urllib.error.URLError:
                time.sleep(0.05)
        options = {"args": FLAGS + [f"--user-data-dir={self.profile}", "about:blank"], "binary": "/usr/bin/chromium"}
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.address += "/session/" + made["sessionId"]

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error

    def open(self, address):
        self.messages()  # Forget what came before.
        self.requests()
        self.ask("POST", "/url", {"url": address.as_uri() if isinstance(address, pathlib.Path) else address})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def value(self, expression):
        return self.run("return " + expression)

    def wait(self, expression, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.value(expression):
                return found
            time.sleep(0.05)
        raise AssertionError(f"{expression} did not come true in {seconds} s")

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).click()", selector)

    def command(self, name, **parameters):
        """One of Chrome's own protocol."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def messages(self):
        """What the console said since the last call."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that pages asked for since the last call, but for the browser's own pages."""
        events = [json.loads(entry["message"])["message"] for entry in self.ask("POST", "/se/log", {"type": "performance"})]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith(("chrome:", "chrome-untrusted:"))]

    def size(self, width, height, phone=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)

    def prefer(self, scheme):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, selector, path, scale):
        """Of one element."""
        x, y, width, height = self.run("const box = document.querySelector(arguments[0]).getBoundingClientRect(); "
                                       "return [box.x + scrollX, box.y + scrollY, box.width, box.height]", selector)
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": x, "y": y, "width": width, "height": height, "scale": scale})
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def quit(self):
        try:
            self.ask("DELETE", "")
        except (AssertionError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait(timeout=20)
        shutil.rmtree(self.profile, ignore_errors=True)
