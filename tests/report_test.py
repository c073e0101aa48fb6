"""Report pages, in a real browser: what they show is what the records hold, and nothing leaves them."""

import base64
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

from page import PageTest
from program import ProgramTest
from records import epoch, write_run

ROOT = pathlib.Path(__file__).resolve().parent.parent

RECIPE = '''seeds = [1, 2]
workers = 2
test-samples = 500
epochs = 4
batch = 25
schedule = "step"
milestones = [3]

["mild <b>"]
codec = "topk:keep=0.1"

[accordion]
controller = "accordion"
mild = "topk:keep=0.1"
strong = "topk:keep=0.001"
interval = 1
'''


T_OF_TWO = 12.7062  # Student's, for the 95 % interval of two values: one degree of freedom.


def interval(a, b, scale=1, places=2):
    return f"± {scale * T_OF_TWO * abs(a - b) / 2:.{places}f}"


def difference(firsts, seconds, scale=1, places=2):
    """As the page has it: the mean of the second less the first, seed by seed, and its interval."""
    one, other = (b - a for a, b in zip(firsts, seconds))
    mean = (one + other) / 2
    return f"{'−' if mean < 0 else '+'}{abs(scale * mean):.{places}f} {interval(one, other, scale, places)}"


class Comparisons(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = None

    def setUp(self):
        super().setUp()
        if Comparisons.runs is None:  # Once for all tests: real runs, of a few seconds each.
            (self.folder / "pair.toml").write_text(RECIPE)
            self.run_program("compare", "--recipe", "pair.toml", "--out", "out", "--quiet", "--samples", "600")
            out, _ = self.run_program("report", "out")
            self.assertEqual(out, "Report: out/report.html (a page for any browser; it needs no network)\n")
            records = {(setting, seed): self.read_run(self.folder / "out" / name / f"seed-{seed}")
                       for setting, name in enumerate(("mild__b_", "accordion")) for seed in (1, 2)}
            Comparisons.out = pathlib.Path(tempfile.mkdtemp(prefix="accordion-test-")) / "out"
            self.addClassCleanup(shutil.rmtree, Comparisons.out.parent)
            shutil.copytree(self.folder / "out", Comparisons.out)
            Comparisons.runs = records, (self.folder / "out" / "report.html").read_bytes()
        self.records, page = Comparisons.runs
        self.page = self.folder / "report.html"
        self.page.write_bytes(page)
        self.browser.open(self.page)

    def epochs(self, setting, seed):
        return self.records[setting, seed][1]

    def last(self, setting, key):
        return [self.epochs(setting, seed)[-1][key] for seed in (1, 2)]

    def total(self, setting, key):
        """In the mean of the two runs."""
        return sum(record[key] for seed in (1, 2) for record in self.epochs(setting, seed)) / 2

    def test_table_and_sentence(self):
        self.check_silence(self.page)
        columns = self.browser.value("[...document.querySelectorAll('#comparison thead th')].map((cell) => cell.textContent)")
        self.assertEqual(columns, ["Setting", "Test accuracy, %", "95 % interval", "Paired difference", "Training loss", "Sent per worker", "Extra", "Time"])
        rows = self.browser.value("[...document.querySelectorAll('#comparison tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual([row[0] for row in rows], ["mild <b> (2 runs)", "accordion (2 runs)"])
        for setting, row in enumerate(rows):
            mean = sum(self.epochs(setting, seed)[-1]["test_accuracy"] for seed in (1, 2)) / 2
            self.assertEqual(row[1], f"{100 * mean:.2f}")
            self.assertEqual(row[2], interval(*self.last(setting, "test_accuracy"), scale=100))
            # "1.23 MB (2.8×)": the number, and how many times the first's it saves.
            for cell, key, units in ((row[5], "wire_bytes", {"kB": 1e3, "MB": 1e6}), (row[7], "seconds", {"s": 1})):
                shown = re.fullmatch(r"([\d.]+) (\w+) \(([\d.]+)×\)", cell)
                self.assertTrue(shown, cell)
                self.assertAlmostEqual(float(shown[1]) * units[shown[2]] / self.total(setting, key), 1, delta=0.006, msg=cell)
                self.assertAlmostEqual(float(shown[3]) * self.total(setting, key) / self.total(0, key), 1, delta=0.006, msg=cell)
            self.assertEqual(row[6], ["1.00", "0.00"][setting])
        self.assertEqual(rows[0][3], "–")
        self.assertEqual(rows[1][3], difference(self.last(0, "test_accuracy"), self.last(1, "test_accuracy"), scale=100))
        losses = [self.last(setting, "train_loss") for setting in (0, 1)]
        self.assertEqual(rows[0][4], f"{sum(losses[0]) / 2:.3f}")
        self.assertEqual(rows[1][4], f"{sum(losses[1]) / 2:.3f} ({difference(*losses, places=3)})")
        sentence = self.browser.value("document.getElementById('sentence').textContent")
        self.assertRegex(sentence, r"^accordion: \d+\.\d\d %, .* mild <b> .*\(paired difference .*, 2 seeds\), with 0\.\d+ of its data\.$")

    def test_results_over_epochs_data_and_time(self):
        costs = {"epoch": lambda records: [record["epoch"] + 1 for record in records],
                 "data": lambda records: [sum(each["wire_bytes"] for each in records[:e + 1]) for e in range(4)],
                 "time": lambda records: [sum(each["seconds"] for each in records[:e + 1]) for e in range(4)]}
        for abscissa, cost in costs.items():
            self.browser.click(f"#figure-results [data-choice={abscissa}]")
            series = self.series("results")
            self.assertEqual(sorted(series), ["band-0", "band-1", "line-0", "line-1"])
            for setting in (0, 1):
                first, second = self.epochs(setting, 1), self.epochs(setting, 2)
                x = [(a + b) / 2 for a, b in zip(cost(first), cost(second))]
                pairs = [(100 * a["test_accuracy"], 100 * b["test_accuracy"]) for a, b in zip(first, second)]
                self.assertPoints(series[f"line-{setting}"]["data"], [(at, sum(pair) / 2) for at, pair in zip(x, pairs)])
                self.assertPoints(series[f"band-{setting}"]["data"], [(at, min(pair), max(pair)) for at, pair in zip(x, pairs)])
        self.browser.click("#figure-results [data-choice=epoch]")
        self.browser.click("#figure-results [data-choice=train_loss]")
        losses = [[e + 1, (a["train_loss"] + b["train_loss"]) / 2] for e, (a, b) in enumerate(zip(self.epochs(1, 1), self.epochs(1, 2)))]
        self.assertPoints(self.series("results")["line-1"]["data"], losses)
        rows = self.table("results")
        self.assertEqual(len(rows), 8)
        self.assertAlmostEqual(float(rows[4]["train_loss mean"]), losses[0][1])

    def test_a_setting_can_be_hidden(self):
        self.browser.click("#figure-results [data-choice=setting-0]")
        self.assertEqual(sorted(self.series("results")), ["band-1", "line-1"])
        self.browser.click("#figure-results [data-choice=setting-0]")
        self.assertEqual(len(self.series("results")), 4)

    def test_inside_a_run(self):
        # Accordion's first run has the most to show, and is chosen.
        config, records, summary = self.records[1, 1]
        self.assertEqual(self.browser.value("document.getElementById('run').selectedOptions[0].textContent"), "accordion, seed 1")
        layers = [each["name"] for each in records[0]["layers"]]
        cells = self.cells()
        self.assertEqual(len(cells), 4 * len(layers))
        names = self.browser.value("[...document.querySelectorAll('#figure-levels .legend .entry')].map((entry) => entry.textContent)")
        for x, y, kind in cells:
            self.assertEqual(names[kind].replace("not compressed", "none"), records[x]["layers"][y]["codec"])
        for row, (name, at) in zip(self.table("levels"), ((name, at) for name in layers for at in range(4))):
            recorded = records[at]["layers"][layers.index(name)]
            self.assertEqual([row["layer"], row["epoch"], row["reason"]], [name, str(at), recorded["reason"]])

        self.browser.click("#figure-norms [data-choice=linear]")
        norms = self.series("norms")
        shown = [name for name in norms if name.startswith("norm-")]
        self.assertEqual(len(shown), min(8, len(layers)))
        by_name = {row["layer"]: [] for row in self.table("norms")}
        for place, name in enumerate(by_name):
            self.assertPoints(norms[f"norm-{place}"]["data"],
                              [(at, records[at]["layers"][layers.index(name)]["norm"]) for at in range(4)])
        critical = {at for at in range(4) if any(each["level"] == 0 for each in records[at]["layers"] if each["name"] in by_name)}
        shaded = {at for area in norms["regimes"]["markArea"]["data"] for at in range(4) if area[0]["xAxis"] < at < area[1]["xAxis"]}
        self.assertEqual(shaded, critical)

        schedule = self.series("schedule")
        self.assertPoints(schedule["lr"]["data"], [(e["epoch"], e["lr"]) for e in records])
        self.assertPoints(schedule["batch"]["data"], [(e["epoch"], e["global_batch"]) for e in records])
        rows = self.table("bytes")
        self.assertEqual(sum(int(row["payload_bytes"]) for row in rows), summary["payload_bytes"])
        steps = sum(each["steps"] for each in records)
        self.assertEqual(sum(int(row["dense_bytes"]) for row in rows), steps * 4 * sum(each["elements"] for each in records[0]["layers"]))
        # The chart has them by what was sent, most first.
        sent = {layer["name"]: sum(each["payload_bytes"] for record in records for each in record["layers"] if each["name"] == layer["name"])
                for layer in records[0]["layers"]}
        order = sorted(records[0]["layers"], key=lambda layer: -sent[layer["name"]])[:12]
        bars = self.series("bytes")
        self.assertEqual(self.browser.value("accordion.charts().bytes.getOption().yAxis[0].data"), [layer["name"] for layer in order])
        self.assertEqual(bars["sent"]["data"], [sent[layer["name"]] for layer in order])
        self.assertEqual(bars["dense"]["data"], [steps * 4 * layer["elements"] for layer in order])
        # Each part of a step by itself: what waited for input is a part of what passes for computing.
        split = self.series("split")
        for at, record in enumerate(records):
            parts = {part: record["step_split"][f"{part}_ms"] for part in ("compute", "encode", "wire", "decode")}
            parts["input"] = min(parts["compute"], 1000 * record["input_wait_seconds"] / record["steps"])
            parts["compute"] -= parts["input"]
            for part, expected in parts.items():
                if part in split or expected > 0:
                    self.assertAlmostEqual(split[part]["data"][at], expected, msg=part)
        self.assertTrue(any("This run had no guard" in note for note in self.notes()))
        command = self.browser.value("document.getElementById('command').textContent")
        self.assertTrue(command.startswith("accordion train --workers 2 --threads "), command)
        again = self.browser.value("document.getElementById('comparison-command-0').textContent")
        self.assertEqual(again, "accordion compare --recipe pair.toml --out out --seeds 1,2 --samples=600")
        for part in ("--controller accordion", "--mild topk:keep=0.1", "--milestones 3", "--epochs 4"):
            self.assertIn(part, command)

        # Another run, whose levels never change.
        self.browser.run("const run = document.getElementById('run'); run.value = '0'; run.dispatchEvent(new Event('change'))")
        names = self.browser.value("[...document.querySelectorAll('#figure-levels .legend .entry')].map((entry) => entry.textContent)")
        self.assertEqual(names, ["topk:keep=0.1,published=false", "not compressed"], "as the record has it")

    def test_the_command_of_a_comparison_repeats_it(self):
        (self.folder / "pair.toml").write_text(RECIPE)
        command = self.browser.value("document.getElementById('comparison-command-0').textContent").split()
        shutil.copytree(Comparisons.out, self.folder / "out")
        out, _ = self.run_program(*command[1:], "--dry-run")
        self.assertEqual(out.count(": finished, "), 4, "the very options of the runs that are there\n" + out)

    def test_the_command_of_a_page_repeats_its_run(self):
        command = self.browser.value("document.getElementById('command').textContent").split()
        out, _ = self.run_program(*command[1:], "--out", "again", "--quiet", "--json")
        self.assertEqual(json.loads(out)["test_accuracy"], self.epochs(1, 1)[-1]["test_accuracy"])

    def test_hovering_shows_the_reason(self):
        chart = "accordion.charts().levels"
        self.browser.run("document.getElementById('figure-levels').scrollIntoView()")
        x, y = self.browser.value(f"""(() => {{
            const box = {chart}.getDom().getBoundingClientRect(), at = {chart}.convertToPixel('grid', [3, 0]);
            return [box.left + at[0], box.top + at[1]]; }})()""")
        for offset in (3, 0):
            self.browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x + offset, y=y)
        text = self.browser.wait("[...document.querySelectorAll('#figure-levels .tip')].map((tip) => tip.textContent).join('')")
        reason = self.epochs(1, 1)[3]["layers"][0]["reason"]
        self.assertIn(reason[1:], text)

    def test_zoom(self):
        window = "(() => { const zoom = accordion.charts().results.getOption().dataZoom[0]; return [zoom.start, zoom.end]; })()"
        self.assertEqual(self.browser.value(window), [0, 100])
        press = "document.querySelector('#figure-results .chart').dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]}))"
        for key, expected in (("+", [25, 75]), ("ArrowLeft", [12.5, 62.5]), ("ArrowRight", [25, 75]), ("-", [0, 100]), ("+", [25, 75]), ("0", [0, 100])):
            self.browser.run(press, key)
            self.assertEqual(self.browser.value(window), expected, key)
        self.browser.run("document.getElementById('figure-results').scrollIntoView()")
        x, y = self.browser.value("(() => { const box = accordion.charts().results.getDom().getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()")
        self.browser.command("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-400, modifiers=2)
        self.browser.wait(f"(({window})[1] - ({window})[0]) < 100")

    def test_zoom_and_focus_outlast_what_draws_anew(self):
        window = "(() => { const zoom = accordion.charts().%s.getOption().dataZoom[0]; return [zoom.start, zoom.end]; })()"
        self.browser.run("for (const name of ['norms', 'results']) { const box = accordion.charts()[name].getDom(); box.focus(); "
                         "box.dispatchEvent(new KeyboardEvent('keydown', {key: '+'})); window.before = box; }")
        self.browser.prefer("dark")
        self.browser.wait("document.documentElement.dataset.theme === 'dark'")
        self.assertTrue(self.browser.value("document.activeElement !== before && document.activeElement === accordion.charts().results.getDom()"))
        for act in ("#figure-results [data-choice=data]", "#figure-results [data-choice=setting-0]", "#figure-results [data-choice=train_loss]",
                    "#figure-norms [data-choice=linear]"):
            self.browser.run("const at = document.querySelector(arguments[0]); at.focus(); at.click()", act)
            self.assertEqual([self.browser.value(window % name) for name in ("results", "norms")], [[25, 75], [25, 75]], act)
            self.assertTrue(self.browser.value("document.activeElement === document.querySelector(arguments[0])".replace("arguments[0]", json.dumps(act))))

    def test_the_page_says_how_to_zoom(self):
        for part in ("Ctrl and the wheel", "+ and −", "arrows", "0 shows all"):
            self.assertIn(part, self.browser.value("document.getElementById('zoom-help').textContent"))
        labels = self.browser.value("Object.fromEntries(Object.entries(accordion.charts()).filter(([, chart]) => chart).map(([name, chart]) => [name, chart.getDom().getAttribute('aria-label')]))")
        self.assertEqual({name for name, label in labels.items() if "the arrows move, 0 shows all" in label}, set(labels) - {"bytes"}, "bars of layers do not zoom")

    def test_dark_and_light(self):
        theme, paper = "document.documentElement.dataset.theme", "getComputedStyle(document.body).backgroundColor"
        ink = "accordion.charts().results.getOption().xAxis[0].axisLabel.color"
        self.assertEqual(self.browser.value(theme), "light")
        light = self.browser.value(paper), self.browser.value(ink)
        self.browser.prefer("dark")
        self.browser.wait(f"{theme} === 'dark'")
        dark = self.browser.value(paper), self.browser.value(ink)
        self.assertNotEqual(dark[0], light[0])
        self.assertNotEqual(dark[1], light[1], "charts follow")
        self.browser.click("#theme")  # system -> light
        self.assertEqual((self.browser.value(theme), self.browser.value(paper)), ("light", light[0]))
        self.browser.click("#theme")
        self.assertEqual(self.browser.value(theme), "dark")
        self.browser.click("#theme")
        self.browser.prefer("light")
        self.browser.wait(f"{theme} === 'light'")

    def test_print(self):
        self.browser.click("#theme")
        self.browser.click("#theme")
        # As the page is when the picture of it is taken: its own listener has been called before this one.
        self.browser.run("""addEventListener('beforeprint', () => { window.printed = {
            theme: document.documentElement.dataset.theme, paper: getComputedStyle(document.body).backgroundColor,
            ink: accordion.charts().results.getOption().xAxis[0].axisLabel.color,
            charts: Object.values(accordion.charts()).filter(Boolean).map((chart) => [chart.getWidth(), chart.getOption().series.length])}; })""")
        dark = self.browser.value("accordion.charts().results.getOption().xAxis[0].axisLabel.color")
        pdf = base64.b64decode(self.browser.command("Page.printToPDF", printBackground=True)["data"])
        printed = self.browser.value("printed")
        self.assertEqual((printed["theme"], printed["paper"]), ("light", "rgb(255, 255, 255)"))
        self.assertNotEqual(printed["ink"], dark, "charts are light, too")
        self.assertEqual(len(printed["charts"]), 6)
        for width, series in printed["charts"]:
            self.assertTrue(0 < width <= 700 and series > 0, printed["charts"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreaterEqual(len(re.findall(rb"/Subtype\s*/Form\b", pdf)), 6, "a drawing for each chart")
        self.assertGreaterEqual(len(re.findall(rb"/Type\s*/Page\b", pdf)), 3)
        self.browser.command("Emulation.setEmulatedMedia", media="print")
        shown = self.browser.value("['#theme', '.controls', '.csv', '.copy', '#run', '#zoom-help', 'figure details'].filter((each) => getComputedStyle(document.querySelector(each)).display !== 'none')")
        self.assertEqual(shown, [], "what paper cannot do is not on it")
        self.browser.command("Emulation.setEmulatedMedia", media="")
        self.assertEqual(self.browser.value("document.documentElement.dataset.theme"), "dark", "after printing it is as before")
        self.browser.click("#theme")

    def test_labels_and_tables(self):
        charts = self.browser.value("[...document.querySelectorAll('.chart')].map((chart) => [chart.getAttribute('role'), chart.getAttribute('aria-label'), chart.tabIndex])")
        self.assertEqual(len(charts), 6)  # All but the guard's.
        for role, label, tab in charts:
            self.assertEqual((role, tab), ("img", 0))
            self.assertGreater(len(label), 30)
        unnamed = self.browser.value("[...document.querySelectorAll('button, select')].filter((each) => !each.textContent.trim() && !each.getAttribute('aria-label')).length")
        self.assertEqual(unnamed, 0)
        self.browser.run("for (const each of document.querySelectorAll('figure details')) each.open = true")
        self.browser.wait("[...document.querySelectorAll('figure details')].every((each) => each.querySelector('table'))")
        self.assertEqual(self.browser.value("document.querySelectorAll('#figure-results details tbody tr').length"), 8)

    def test_csv_can_be_saved(self):
        self.browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder))
        self.browser.click("#figure-results .csv")
        path = self.folder / "accordion-results.csv"
        for _ in range(100):
            if path.exists():
                break
            time.sleep(0.05)
        self.assertEqual(path.read_text(), self.browser.value("accordion.csv('results')"))

    def test_a_phone(self):
        self.browser.size(390, 844, phone=True)
        self.browser.open(self.page)
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 390)
        self.assertLessEqual(self.browser.value("Math.max(...[...document.querySelectorAll('.chart')].map((chart) => chart.getBoundingClientRect().right))"), 390)
        self.assertEqual(self.browser.messages(), [])


class Demonstration(PageTest):
    def test_the_commands_of_make_demo(self):
        """With less data and fewer epochs and seeds."""
        compare, report = re.findall(r"build/accordion ((?:compare|report) [^&\n]*[^&\s])", (ROOT / "Makefile").read_text())
        (self.folder / "recipes").symlink_to(ROOT / "recipes")
        table, _ = self.run_program(*compare.split(), "--samples", 320, "--test-samples", 200, "--epochs", 2, "--seeds", "1,2", "--quiet")
        self.assertEqual(re.findall(r"^\| (\w+)", table, re.M), ["setting", "mild", "strong", "accordion"])
        out, _ = self.run_program(*report.split())
        self.assertEqual(out, "Report: runs/compare-demo/report.html (a page for any browser; it needs no network)\n")
        page = self.folder / "runs/compare-demo/report.html"
        self.browser.open(page)
        self.check_silence(page)
        self.assertEqual(self.notes(), ["This run had no guard: nobody changed levels for the sake of time (train --guard harmless)."])
        rows = self.browser.value("[...document.querySelectorAll('#comparison tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual([row[0] for row in rows], [f"{name} (2 runs)" for name in ("mild", "strong", "accordion")])
        values = [line.split("|")[2].strip() for line in table.splitlines()[2:5]]
        self.assertEqual([row[1] for row in rows], values, "as the table on the terminal")
        self.assertEqual(self.browser.value("document.getElementById('run').options.length"), 6)
        self.assertEqual(sorted(self.series("results")), sorted(f"{kind}-{at}" for kind in ("band", "line") for at in range(3)))
        # What picture.py makes of it.
        self.run_picture(page, self.folder / "results.png")

    def run_picture(self, page, path):
        subprocess.run(["/usr/bin/python3", ROOT / "tests/picture.py", page, path], check=True, timeout=100)
        data = path.read_bytes()
        self.assertTrue(data.startswith(b"\x89PNG"))
        self.assertEqual(struct.unpack(">I", data[16:20]), (1278,))


class Refusals(ProgramTest):
    def test_what_is_no_run(self):
        (self.folder / "empty").mkdir()
        for arguments, expected in (((), "report: no folder, expected those of runs, or of a comparison"),
                                    (("empty",), "report: empty, expected the folder of a run (with config.json) or of a comparison (with comparison.json)"),
                                    (("nowhere",), "report: nowhere, expected the folder of a run")):
            _, err = self.run_program("report", *arguments, status=2)
            self.assertIn(expected, err)
        run = write_run(self.folder / "run", [epoch(0)])
        _, err = self.run_program("report", run, "-o", "nowhere/page.html", status=1)
        self.assertRegex(err, r"nowhere/.*: cannot open: No such file or directory")


if __name__ == "__main__":
    unittest.main()
