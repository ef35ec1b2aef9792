"""A headless Chromium, by its DevTools protocol over pipes."""

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a Chromium; None if there is none. The variable ZEUSM_TEST_BROWSER names another one."""
    name = os.environ.get("ZEUSM_TEST_BROWSER")
    return name or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page, which records what the page logs and what it asks of the network."""

    def __init__(self, executable):
        self.profile = tempfile.mkdtemp(prefix="zeusm-browser-")
        ours, theirs = os.pipe(), os.pipe()  # What the browser reads, and what it writes.
        command = [executable, "--headless=new", "--no-sandbox", "--remote-debugging-pipe"]
        command += ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio"]
        command += ["--disable-extensions", "--disable-background-networking", "--disable-sync"]
        command += [f"--user-data-dir={self.profile}", "--window-size=1280,1000", "about:blank"]
        reads, writes = (fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (ours[0], theirs[1]))

        def connect():  # The protocol's descriptors are 3 and 4.
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.process = subprocess.Popen(
            command,
            pass_fds=(3, 4),
            preexec_fn=connect,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        os.close(ours[0])
        os.close(theirs[1])
        self.to = os.fdopen(ours[1], "wb", buffering=0)
        self.source = os.fdopen(theirs[0], "rb", buffering=0)
        self.rest = b""
        self.numbers = itertools.count(1)
        self.events = []
        self.session = None
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        self.to.close()
        self.source.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        """The next message of the browser."""
        while b"\0" not in self.rest:
            data = self.source.read(1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        number = next(self.numbers)
        call = {"id": number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        self.to.write(json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def load(self, path, width=1280, height=1000):
        """Open a file, and wait until it is loaded."""
        self.events.clear()
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send("Page.navigate", url=path.as_uri())
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression in the page."""
        result = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def until(self, expression, seconds=120):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}"
            time.sleep(0.05)

    def settle(self):
        """Wait until two frames were drawn."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def complaints(self):
        """Errors and warnings of the page."""
        self.evaluate("1")
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(parameters["args"])
            elif event["method"] == "Log.entryAdded":
                found.append(parameters["entry"])
        return found

    def requests(self):
        """The addresses that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start, end):
        button = {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, **button)
        for part in (0.3, 0.7, 1):
            x, y = (a + (b - a) * part for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *end, **button)

    def key(self, name, text=""):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name)

    def screenshot(self, path, whole=False):
        """Write a picture of the window, or of the whole page."""
        result = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(result["data"]))
