#!/usr/bin/python3
"""The picture of the README: the results of a report page over data sent.

    tests/picture.py runs/compare-demo/report.html docs/images/accuracy-over-data.png
"""

import pathlib
import sys

from browser import Browser


def main():
    page, path = map(pathlib.Path, sys.argv[1:])
    browser = Browser()
    try:
        browser.size(900, 900)
        browser.open(page.resolve())
        browser.click("#figure-results [data-choice=data]")
        # Neither numbers nor buttons for them: a picture has none.
        browser.run("document.querySelector('#figure-results .foot').remove()")
        browser.picture("#figure-results", path, scale=1.5)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
