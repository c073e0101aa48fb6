"""Report pages in a real browser: opening them, and asking what they show."""

import csv
import io

from browser import Browser
from program import ProgramTest

CHARTS = ["results", "levels", "norms", "schedule", "bytes", "split", "guard"]


class PageTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        super().setUp()
        self.browser.size(1280, 900)
        self.browser.prefer("light")

    def report(self, *folders):
        self.run_program("report", *folders, "-o", "page.html")
        return self.folder / "page.html"

    def show(self, *folders):
        """Opens the page of the folders: no message on the console, no request but for the page itself."""
        page = self.report(*folders)
        self.browser.open(page)
        self.assertTrue(self.browser.value("Boolean(window.accordion)"), self.browser.messages())
        self.check_silence(page)
        return page

    def check_silence(self, page):
        self.assertEqual(self.browser.messages(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith(("data:", "blob:"))], [page.as_uri()])

    def series(self, chart):
        """A chart's series by id."""
        found = self.browser.value(f"accordion.charts().{chart}.getOption().series.map(({{id, data, markArea}}) => ({{id, data, markArea}}))")
        return {each["id"]: each for each in found}

    def cells(self):
        """The map of levels, box by box: (point, layer, kind)."""
        return [(at, y, kind) for first, last, y, kind in self.series("levels")["levels"]["data"] for at in range(first, last + 1)]

    def notes(self):
        return self.browser.value("[...document.querySelectorAll('.note')].map((note) => note.textContent)")

    def table(self, chart):
        return list(csv.DictReader(io.StringIO(self.browser.value(f"accordion.csv('{chart}')"))))

    def assertPoints(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            for a, b in zip(one, other):
                self.assertAlmostEqual(a, b, places=6)
