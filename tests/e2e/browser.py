"""A headless Chromium, driven by the DevTools protocol: opens pages, moves the pointer, takes screenshots."""
import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import websocket

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0",
         "--remote-allow-origins=*"]
PATIENCE = 60  # seconds


class Browser:
    """One page. `log` collects exceptions and messages of the console, `requests` every address asked for."""

    def __init__(self):
        self.profile = pathlib.Path(tempfile.mkdtemp(prefix="normlab-chromium-"))
        self.process = subprocess.Popen(["chromium", *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.log, self.requests, self.calls, self.session = [], [], 0, None
        self.socket = websocket.create_connection(self.address(), timeout=PATIENCE)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def address(self):
        """Chromium writes the port it listens at, and the path, into its profile."""
        file, end = self.profile / "DevToolsActivePort", time.monotonic() + PATIENCE
        while not (file.exists() and len(lines := file.read_text().split()) == 2):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("chromium does not start")
            time.sleep(0.05)
        return f"ws://127.0.0.1:{lines[0]}{lines[1]}"

    def call(self, method, **parameters):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": parameters}
        self.socket.send(json.dumps({**message, "sessionId": self.session} if self.session else message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.calls:
                assert "error" not in answer, answer
                return answer["result"]
            self.note(answer)

    def note(self, event):
        parameters = event.get("params", {})
        if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.log.append(json.dumps(parameters))
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, page, width=1040, height=900, dark=False):
        """A file, or an address that starts with http."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        calm = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme, calm])
        address = page if str(page).startswith("http") else pathlib.Path(page).resolve().as_uri()
        self.call("Page.navigate", url=address)
        end = time.monotonic() + PATIENCE
        while not self.evaluate("location.protocol !== 'about:' && document.readyState === 'complete'"):
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.02)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def centre(self, selector):
        """Scrolls the first visible match into view; its box in the window."""
        box = self.evaluate(f"""(() => {{
            const found = [...document.querySelectorAll({json.dumps(selector)})].find(e => e.getClientRects().length);
            if (!found) return null;
            found.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = found.getBoundingClientRect();
            return {{x: box.x, y: box.y, width: box.width, height: box.height}};
        }})()""")
        assert box, f"nothing to see of {selector}"
        return box

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector, times=1):
        box = self.centre(selector)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for count in range(1, times + 1):
            for kind in ["mousePressed", "mouseReleased"]:
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def screenshot(self, file, **clip):
        """The window, or the part of the page with this x, y, width and height."""
        extra = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        shot = self.call("Page.captureScreenshot", format="png", **extra)
        pathlib.Path(file).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, websocket.WebSocketException, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.socket.close()
        shutil.rmtree(self.profile, ignore_errors=True)
