#!/usr/bin/env python3
"""Pictures of a report page: tools/screenshot_report.py REPORT.html FOLDER [--whole].

Writes light.png, dark.png and narrow.png, each the first screen of the page, or with --whole all of it in parts.
Needs chromium and the Python packages of tests/requirements.txt.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
from browser import Browser  # noqa: E402

WINDOWS = {"light": (1040, 1500, False), "dark": (1040, 1500, True), "narrow": (375, 1500, False)}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("report", type=pathlib.Path)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--whole", action="store_true")
options = parser.parse_args()
options.folder.mkdir(parents=True, exist_ok=True)

browser = Browser()
try:
    for name, (width, height, dark) in WINDOWS.items():
        browser.open(options.report, width, height, dark)
        total = browser.evaluate("document.documentElement.scrollHeight")
        parts = range(0, total, height) if options.whole else [0]
        for i, top in enumerate(parts):
            file = options.folder / (f"{name}-{i}.png" if options.whole else f"{name}.png")
            browser.screenshot(file, x=0, y=top, width=width, height=min(height, total - top))
            print(file)
finally:
    browser.close()
