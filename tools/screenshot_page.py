#!/usr/bin/env python3
"""Pictures of a page, a report, one of `normlab inspect` or of `normlab serve`: tools/screenshot_page.py PAGE FOLDER.

PAGE is a file or an address.
Writes light.png, dark.png, narrow.png and narrow-dark.png, each the first screen of the page, or with --whole all of it
in parts; with a palette, so that they stay small. Needs chromium and the Python packages of tests/requirements.txt.
"""
import argparse
import io
import pathlib
import sys

from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
from browser import Browser  # noqa: E402

WIDTHS = {"light": (1280, False), "dark": (1280, True), "narrow": (390, False), "narrow-dark": (390, True)}
COLOURS = 64


def shrink(file):
    image = Image.open(io.BytesIO(file.read_bytes())).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--height", type=int, default=1150, help="of the window")
    parser.add_argument("--whole", action="store_true", help="all of the page, in parts")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        for name, (width, dark) in WIDTHS.items():
            browser.open(options.page, width, options.height, dark)
            total = browser.evaluate("document.documentElement.scrollHeight")
            parts = range(0, total, options.height) if options.whole else [0]
            for i, top in enumerate(parts):
                file = options.folder / (f"{name}-{i}.png" if options.whole else f"{name}.png")
                browser.screenshot(file, x=0, y=top, width=width, height=min(options.height, total - top))
                shrink(file)
                print(file)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
