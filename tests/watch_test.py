"""The live page: it grows with its run, and gives nothing else away."""

import http.client
import json
import pathlib
import re
import signal
import unittest

from browser import Browser
from program import ProgramTest
from records import epoch, write_run


class WatchTest(ProgramTest):
    def watch(self, folder):
        process = self.start("watch", folder)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        port = re.search(r"at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends\)$", line.strip())
        self.assertTrue(port, line)
        return process, int(port[1])

    def get(self, port, path, method="GET", host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Host": host or f"127.0.0.1:{port}"} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, answer.headers


class Serving(WatchTest):
    def setUp(self):
        super().setUp()
        self.run_folder = write_run(self.folder / "run", [epoch(0)], summary=False)
        (self.folder / "secret").write_text("secret")

    def append(self, record):
        with open(self.run_folder / "epochs.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")

    def test_the_page_and_its_data(self):
        process, port = self.watch("run")
        status, page, headers = self.get(port, "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("connect-src 'self'", page)
        status, text, headers = self.get(port, "/data.json")
        self.assertEqual(len(json.loads(text)["runs"][0]["epochs"]["epoch"]), 1)
        tag = headers["ETag"]
        self.assertEqual(self.get(port, "/data.json", **{"If-None-Match": tag})[0], 304)
        self.append(epoch(1))
        status, text, _ = self.get(port, "/data.json", **{"If-None-Match": tag})
        self.assertEqual((status, len(json.loads(text)["runs"][0]["epochs"]["epoch"])), (200, 2))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 0)

    def test_nothing_else(self):
        _, port = self.watch("run")
        paths = ["/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/secret", "/../secret", "/secret", "/config.json", "/run/config.json",
                 "//etc/passwd", "/epochs.jsonl", "/data.json/../../secret", "/index.html", "/data.json%00/../secret"]
        for path in paths:
            status, text, _ = self.get(port, path)
            self.assertEqual(status, 404, path)
            self.assertNotIn("secret", text)
            self.assertNotIn("root:", text)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertIn(self.get(port, "/data.json", method=method, **{"Content-Length": "0"})[0], (400, 404, 405), method)

    def test_only_this_machine_by_its_own_names(self):
        _, port = self.watch("run")
        for host in (f"evil.example:{port}", "evil.example", "127.0.0.1", f"127.0.0.1.evil.example:{port}", f"[::1]:{port}", "127.0.0.1:1"):
            for path in ("/", "/data.json"):
                status, text, _ = self.get(port, path, host=host)
                self.assertEqual(status, 403, host)
                self.assertNotIn("epochs", text)
        self.assertEqual(self.get(port, "/data.json", host=f"localhost:{port}")[0], 200)
        # Bound to loopback alone: the table of listening sockets has its address.
        listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
        self.assertEqual([each for each in listening if int(each.split(":")[1], 16) == port], [f"0100007F:{port:04X}"])

    def test_a_folder_that_is_going_is_no_end(self):
        _, port = self.watch("run")
        (self.run_folder / "config.json").rename(self.run_folder / "gone")
        self.assertEqual(self.get(port, "/data.json")[0], 503)
        (self.run_folder / "gone").rename(self.run_folder / "config.json")
        self.assertEqual(self.get(port, "/data.json")[0], 200)

    def test_in_a_browser_it_grows(self):
        browser = Browser()
        self.addCleanup(browser.quit)
        _, port = self.watch("run")
        address = f"http://127.0.0.1:{port}/"
        browser.open(address)
        points = "accordion.charts().results.getOption().series[0].data.length"
        browser.wait(f"{points} === 1")
        browser.wait("document.querySelector('.live').textContent.startsWith('Live')")
        self.append(epoch(1))
        browser.wait(f"{points} === 2")
        self.append(epoch(2))
        (self.run_folder / "summary.json").write_text(json.dumps({"status": "finished"}))
        browser.wait(f"{points} === 3")
        browser.wait("document.querySelector('.live').textContent === 'The run has ended.'")
        browser.wait("document.querySelectorAll('#comparison tbody tr').length === 1")
        self.assertEqual(browser.messages(), [])
        asked = {url for url in browser.requests() if not url.startswith("data:")}
        self.assertEqual(asked, {address, address + "data.json"})


    def test_in_a_browser_a_comparison_ends_with_its_last_run(self):
        browser = Browser()
        self.addCleanup(browser.quit)
        out = self.folder / "out"
        out.mkdir()
        (out / "comparison.json").write_text(json.dumps({"recipe": "r.toml", "seeds": [1, 2], "settings": [{"name": each, "folder": each} for each in "ab"]}))
        _, port = self.watch("out")
        browser.open(f"http://127.0.0.1:{port}/")
        runs, sign = "accordion.data().runs", "document.querySelector('.live').textContent"
        picked = "document.getElementById('run').selectedOptions[0]?.textContent"
        browser.wait(f"{sign}.startsWith('Live')")  # With no run yet.
        for setting, seed, count in (("a", 1, 0), ("b", 1, 2), ("a", 2, 3), ("b", 2, 4)):
            write_run(out / setting / f"seed-{seed}", [epoch(0)], {"seed": seed})
            if not count:
                continue
            browser.wait(f"{runs}.length === {count}")
            # In the gap between two runs all of them have ended.
            browser.wait(f"{sign}.startsWith('Live')" if count < 4 else f"{sign} === 'The run has ended.'")
            if count == 2:
                browser.run("const run = document.getElementById('run'); run.value = '1'; run.dispatchEvent(new Event('change'))")
            # The third one stands before the one that was picked.
            self.assertEqual(browser.value(picked), "b, seed 1")
        self.assertEqual(browser.messages(), [])

    def test_in_a_browser_an_epoch_leaves_zoom_and_focus(self):
        browser = Browser()
        self.addCleanup(browser.quit)
        _, port = self.watch("run")
        browser.open(f"http://127.0.0.1:{port}/")
        charts, number = ("results", "norms", "levels", "schedule", "split"), 0
        zoom = "(name) => { const {start, end} = accordion.charts()[name].getOption().dataZoom[0]; return [start, end]; }"
        here = "document.activeElement.closest('figure, section')?.id + ' ' + document.activeElement.tagName + ' ' + document.activeElement.className"

        def grow():
            nonlocal number
            number += 1
            self.append(epoch(number))
            browser.wait(f"accordion.data().runs[0].epochs.epoch.length === {number + 1} && Boolean(accordion.charts().results)")

        browser.run("for (const name of arguments[0]) { const box = accordion.charts()[name].getDom(); box.focus(); "
                    "box.dispatchEvent(new KeyboardEvent('keydown', {key: '+'})); }", list(charts))
        grow()
        for name in charts:
            self.assertEqual(browser.value(f"({zoom})('{name}')"), [25, 75], name)
        self.assertEqual(browser.value(here), "figure-split DIV chart")
        for selector, expected in (("#figure-norms [data-choice=layers]", "figure-norms SELECT "), ("#figure-bytes .csv", "figure-bytes BUTTON csv")):
            browser.run("document.querySelector(arguments[0]).focus()", selector)
            grow()
            self.assertEqual(browser.value(here), expected)
        # What an epoch does not change is not made again: a list that is open would close.
        browser.run("window.picker = document.getElementById('run'); picker.focus(); document.querySelector('#configuration details').open = true")
        grow()
        self.assertTrue(browser.value("document.getElementById('run') === picker && document.activeElement === picker"))
        self.assertTrue(browser.value("document.querySelector('#configuration details').open"))
        self.assertEqual(browser.messages(), [])


class Refusals(WatchTest):
    def test_what_cannot_be_watched(self):
        _, err = self.run_program("watch", status=2)
        self.assertIn("watch: no folder", err)
        _, err = self.run_program("watch", self.folder, status=2)
        self.assertIn("expected the folder of a run", err)
        run = write_run(self.folder / "run", [epoch(0)])
        _, port = self.watch(run)
        _, err = self.run_program("watch", run, "--port", port, status=1)
        self.assertIn(f"watch: port {port} of 127.0.0.1 cannot be had", err)


if __name__ == "__main__":
    unittest.main()
