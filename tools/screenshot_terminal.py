#!/usr/bin/env python3
"""A picture of a command in a terminal: tools/screenshot_terminal.py FILE.png 'COMMAND' [--after SECONDS].

Runs the command in tmux and draws what the terminal shows after so many seconds, or at its end, in the style of the
report. Needs tmux, chromium and the Python packages of tests/requirements.txt.
"""
import argparse
import html
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from browser import Browser  # noqa: E402
from screenshot_page import shrink  # noqa: E402

COLOURS = {"1": "font-weight:600", "2": "color:#8b93a1", "31": "color:#f0907f", "32": "color:#8fd19e",
           "33": "color:#f2b56b", "36": "color:#7cb8f5"}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0; padding: 20px 24px; background: #14171c; }}
pre {{ display: inline-block; margin: 0; color: #e8eaee; font: 14px/1.45 "DejaVu Sans Mono", monospace; }}</style>
<pre>{}</pre>"""


def spans(text):
    """The colours of a terminal as HTML."""
    out, opened = "", False
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            out += html.escape(part)
            continue
        styles = [COLOURS[each] for each in code[1].split(";") if each in COLOURS]
        out += ("</span>" if opened else "") + (f'<span style="{";".join(styles)}">' if styles else "")
        opened = bool(styles)
    return out + ("</span>" if opened else "")


def shown(command, after, columns, rows):
    """What a terminal of this size shows, with its colours."""
    with tempfile.TemporaryDirectory() as folder:
        tmux = ["tmux", "-S", f"{folder}/socket", "-f", "/dev/null"]
        line = f"clear; printf '$ %s\\n' {shlex.quote(command)}; {command}; touch {folder}/end; sleep 600"
        subprocess.run([*tmux, "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", line], check=True)
        start = time.monotonic()
        while not pathlib.Path(folder, "end").exists() and not (after and time.monotonic() > start + after):
            time.sleep(0.1)
        text = subprocess.run([*tmux, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True).stdout
        subprocess.run([*tmux, "kill-server"], check=True)
    return text.rstrip("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("command")
    parser.add_argument("--after", type=float, help="seconds; default: when the command has ended")
    parser.add_argument("--columns", type=int, default=92)
    parser.add_argument("--rows", type=int, default=40)
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write(PAGE.format(spans(shown(options.command, options.after, options.columns, options.rows))))
        page.flush()
        browser = Browser()
        try:
            browser.open(page.name)
            size = browser.evaluate("(b => [b.width, b.height])(document.querySelector('pre').getBoundingClientRect())")
            browser.screenshot(options.file, x=0, y=0, width=size[0] + 48, height=size[1] + 40)
        finally:
            browser.close()
    shrink(options.file)
    print(options.file)


if __name__ == "__main__":
    main()
