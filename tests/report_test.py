"""Report pages, in a real browser: what they show is what the records hold, and nothing leaves them."""

import base64
import json
import time
import unittest

from page import PageTest
from program import ProgramTest
from records import epoch, write_run

RECIPE = '''seeds = [1, 2]
workers = 2
samples = 600
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


class Comparisons(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = None

    def setUp(self):
        super().setUp()
        if Comparisons.runs is None:  # Once for all tests: real runs, of a few seconds each.
            (self.folder / "pair.toml").write_text(RECIPE)
            self.run_program("compare", "--recipe", "pair.toml", "--out", "out", "--quiet")
            out, _ = self.run_program("report", "out")
            self.assertEqual(out, "Report: out/report.html (a page for any browser; it needs no network)\n")
            records = {(setting, seed): self.read_run(self.folder / "out" / name / f"seed-{seed}")
                       for setting, name in enumerate(("mild__b_", "accordion")) for seed in (1, 2)}
            Comparisons.runs = records, (self.folder / "out" / "report.html").read_bytes()
        self.records, page = Comparisons.runs
        self.page = self.folder / "report.html"
        self.page.write_bytes(page)
        self.browser.open(self.page)

    def epochs(self, setting, seed):
        return self.records[setting, seed][1]

    def test_table_and_sentence(self):
        self.check_silence(self.page)
        rows = self.browser.value("[...document.querySelectorAll('#comparison tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual([row[0] for row in rows], ["mild <b> (2 runs)", "accordion (2 runs)"])
        for setting, row in enumerate(rows):
            mean = sum(self.epochs(setting, seed)[-1]["test_accuracy"] for seed in (1, 2)) / 2
            self.assertEqual(row[1], f"{100 * mean:.2f}")
        self.assertEqual(rows[0][3], "–")
        self.assertRegex(rows[1][3], r"^[+−]\d+\.\d\d ± \d+\.\d\d$")
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
        split = self.series("split")
        for at, record in enumerate(records):
            self.assertAlmostEqual(sum(each["data"][at] for each in split.values()),
                                   sum(record["step_split"][f"{part}_ms"] for part in ("compute", "encode", "wire", "decode")))
        self.assertTrue(any("This run had no guard" in note for note in self.notes()))
        command = self.browser.value("document.getElementById('command').textContent")
        self.assertTrue(command.startswith("accordion train --workers 2 --threads "), command)
        for part in ("--controller accordion", "--mild topk:keep=0.1", "--milestones 3", "--epochs 4"):
            self.assertIn(part, command)

        # Another run, whose levels never change.
        self.browser.run("const run = document.getElementById('run'); run.value = '0'; run.dispatchEvent(new Event('change'))")
        names = self.browser.value("[...document.querySelectorAll('#figure-levels .legend .entry')].map((entry) => entry.textContent)")
        self.assertEqual(names, ["topk:keep=0.1,published=false", "not compressed"], "as the record has it")

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
        pdf = base64.b64decode(self.browser.command("Page.printToPDF", printBackground=True)["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 30000)
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
