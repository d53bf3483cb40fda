"""normlab serve: pages of runs and studies while they run, for this machine only, whatever clients do."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest
from browser import Browser
from conftest import BINARY, TINY, run, train
from synthetic_study import SyntheticStudy

HOSTILE = '<img src=x onerror=alert(1)> & "quotes" %41'


class Server:
    """`normlab serve` of a folder on a free port."""

    def __init__(self, folder, *options):
        self.process = subprocess.Popen([str(BINARY), "serve", str(folder), "--port", "0", "--json", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = ""
        while not lines.endswith("}\n"):
            lines += self.process.stdout.readline()
            assert self.process.poll() is None, self.process.stderr.read()
        self.told = json.loads(lines)
        self.port, self.link = self.told["port"], self.told["link"]

    def get(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1000

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(30)
        return code, self.process.stderr.read()


@contextlib.contextmanager
def serving(folder, *options):
    server = Server(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def write_run(folder, rows, max_steps=100):
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'[norm]\nscheme = "qknorm"\n[model]\nn_layers = 2\nn_heads = 2\nd_model = 16\n[train]\nmax_steps = {max_steps}\n')
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def losses(count, every=1):
    return [{"step": i * every, "loss": 4 - 3 * i / count, "val_loss": 4 - 2.5 * i / count, "train_seconds": 0.1 * i,
             "grad_norm": 1.5, "attn/layer00/max_logit": 1.0 + i, "attn/layer00/relative_entropy": 0.5,
             "attn/layer01/max_logit": 2.0 + i, "attn/layer01/relative_entropy": 0.75} for i in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study that is not complete, a run that was stopped, one with a hostile name, and what must not be seen."""
    outer = tmp_path_factory.mktemp("serve")
    made = outer / "served"
    study = SyntheticStudy(made / "studies" / "lp", axes={"norm.p": [2, 3]}, folds=3, steps=200, every=10,
                           study={"study.title": "<script>alert(2)</script>"})
    shutil.rmtree(study.trial_folder({"norm.p": 3}, 2))
    study.write_trial({"norm.p": 3}, 2, "started", last=100)
    write_run(made / "runs" / "plain", losses(40))
    write_run(made / "runs" / HOSTILE, losses(100, 2))
    write_run(outer / "outside" / "run", losses(10))
    (outer / "secret.html").write_text("the secret")
    (made / "runs" / "plain" / "inspect.html").symlink_to(outer / "secret.html")
    (made / "linked").symlink_to(outer / "outside")
    return made


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    if not shutil.which("chromium"):
        pytest.fail("chromium is not installed: tools/install_packages.sh test")
    made = Browser()
    yield made
    made.close()


def test_the_list_has_state_progress_and_best_loss(server):
    page = server.get("/").text
    row = next(line for line in page.split("<tr") if "runs/plain<" in line)
    assert "stopped" in row and "step 39 of 100" in row and "1.5625" in row
    study = next(line for line in page.split("<tr") if "studies/lp<" in line)
    assert "5 of 6 trials" in study and "stopped" in study
    assert "linked" not in page


def test_a_study_shows_its_report_so_far(server):
    page = server.get("/study/studies/lp").text
    assert 'class="verdict"' in page and 'id="loss"' in page and "5 of 6 trials" in page
    assert "/run/studies/lp/trials/p%3D3/fold02-seed1337" in page


def test_a_run_shows_losses_and_diagnostics(server):
    page = server.get("/run/runs/plain").text
    assert 'id="loss"' in page and 'id="probe-largest-logit"' in page and "layer 1" in page
    assert 'href="/inspect/runs/plain"' in page


@pytest.mark.parametrize("path", [
    "/run/../outside/run", "/run/%2e%2e/outside/run", "/run/..%2foutside/run", "/run/runs/%2e%2e/%2e%2e/outside/run",
    "/run/linked/run", "/run/%2fetc", "/run//etc", "/run/runs/plain%00", "/run/%", "/run/%252e%252e/outside/run",
    "/study/runs/plain", "/etc/passwd", "/../../etc/passwd", "/run/runs/plain/metrics.jsonl", "/run/runs/./plain"])
def test_nothing_outside_is_found(server, path):
    answer = server.get(path)
    assert answer.status == 404
    assert "/outside" not in answer.text and "root:" not in answer.text


def test_a_linked_inspect_page_is_not_followed(server):
    answer = server.get("/inspect/runs/plain")
    assert answer.status == 200 and "the secret" not in answer.text and "normlab inspect" in answer.text


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "evil.example:8750"}, {"Host": "127.0.0.1.evil.example"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}])
def test_foreign_pages_are_refused(server, headers):
    answer = server.get("/", **headers)
    assert answer.status == 403 and "runs" not in answer.text


def test_own_page_and_links_are_answered(server):
    host = f"localhost:{server.port}"
    assert server.get("/", Host=host, Origin=f"http://{host}").status == 200
    assert server.get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200


def test_reads_only(server, folder):
    before = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    for path in ["/", "/study/studies/lp", "/run/runs/plain", "/inspect/runs/plain"]:
        assert server.get(path).status == 200
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"]:
            assert server.get(path, method).status == 405
        assert server.get(path, "POST").status == 403  # of no page
        own = server.get(path, "POST", Origin=f"http://127.0.0.1:{server.port}")
        assert own.status == (303 if path.startswith("/inspect") else 405)
        head = server.get(path, "HEAD")
        assert head.status == 200 and head.text == ""
    after = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    assert [(p, s.st_mtime_ns, s.st_size) for p, s in before.items()] == [
        (p, s.st_mtime_ns, s.st_size) for p, s in after.items()]


def state_of(folder):
    return [(path, path.lstat().st_mtime_ns, path.lstat().st_size) for path in sorted(folder.rglob("*"))]


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    """A trained run, and one whose checkpoint is damaged."""
    folder = tmp_path_factory.mktemp("trained")
    train(text, folder / "good", "norm.scheme=qknorm")
    shutil.copytree(folder / "good", folder / "damaged", symlinks=True)
    for weights in (folder / "damaged").rglob("model.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-4])
    return folder


def test_inspect_is_one_click_away(browser, trained):
    before = state_of(trained)
    browser.log.clear(), browser.requests.clear()
    with serving(trained) as server:
        browser.open(server.link + "run/good")
        browser.click(".progress button")
        wait_for(browser, "document.querySelector('#heads') && document.readyState === 'complete'")
        assert browser.evaluate("location.pathname") == "/inspect/good"
        assert "flattest" in browser.evaluate("document.querySelector('.verdict').textContent")
        assert browser.evaluate("document.querySelectorAll('#heads figure svg').length") > 3
        start = server.cpu_seconds()
        browser.open(server.link + "run/good")
        browser.click(".progress button")  # it is kept
        wait_for(browser, "document.querySelector('#heads') !== null", 10)
        assert server.cpu_seconds() - start < 1
        browser.open(server.link + "run/damaged")
        browser.click(".progress button")
        wait_for(browser, "document.querySelector('.notice').textContent.includes('model.safetensors')")
        assert browser.evaluate("document.querySelector('section button').textContent") == "Compute the page"
        browser.call("Page.navigate", url="about:blank")  # the page would ask on after the server has ended
    assert state_of(trained) == before
    assert browser.log == []
    asked = {urllib.parse.urlsplit(url).netloc for url in browser.requests if not url.startswith("data:")}
    assert asked == {f"127.0.0.1:{server.port}"}


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                                     {"Origin": "http://127.0.0.1:1"},
                                     {"Host": "evil.example", "Origin": "http://evil.example"}])
def test_only_its_own_pages_press_the_button(trained, headers):
    with serving(trained) as server:
        assert server.get("/inspect/good", "POST", **headers).status == 403
        assert "being computed" not in server.get("/inspect/good").text
        own = server.get("/inspect/good", "POST", Origin=f"http://127.0.0.1:{server.port}")
        assert own.status == 303 and own.headers["Location"] == "/inspect/good"
        assert "being computed" in server.get("/inspect/good").text
        code, errors = server.stop()  # also while it is computed
        assert code == 0 and errors == ""


def test_elsewhere_the_page_has_the_command_instead(trained):
    with serving(trained, "--host", "0.0.0.0") as server:
        assert "<button>" not in server.get("/run/good").text
        origin = f"http://127.0.0.1:{server.port}"
        assert server.get("/inspect/good", "POST", Origin=origin).status == 303
        page = server.get("/inspect/good").text
        assert "normlab inspect" in page and "being computed" not in page


def test_an_unchanged_page_is_not_sent_again(server):
    tag = server.get("/run/runs/plain").headers["ETag"]
    again = server.get("/run/runs/plain", If_None_Match=tag)
    assert again.status == 304 and again.text == "" and float(again.headers["Next-Look"]) > 0


def test_damaged_files_are_named_on_the_page(tmp_path):
    write_run(tmp_path / "run", losses(3))
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step":1}\nnonsense\n{"step":2}\n')
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.toml").write_text("nonsense [")
    with serving(tmp_path) as server:
        assert "line 2" in server.get("/run/run").text
        assert "damaged" in server.get("/").text
        assert server.get("/study/study").status == 200


def test_a_used_port_is_refused(server, folder):
    done = run("serve", folder, "--port", server.port, check=2)
    assert f"port {server.port}" in done.stderr and "choose another --port" in done.stderr
    assert "not a folder" in run("serve", folder / "missing", check=2).stderr


def test_only_loopback_listens(server):
    hexadecimal = f"{server.port:04X}"
    listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()
                 if line.split()[1].endswith(":" + hexadecimal) and line.split()[3] == "0A"]
    assert listening == ["0100007F:" + hexadecimal]


def test_ctrl_c_stops_it_at_once_even_with_open_connections(folder):
    with serving(folder) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        start = time.monotonic()
        code, errors = server.stop()
        assert code == 0 and errors == "" and time.monotonic() - start < 5
        for connection in idle:
            connection.close()


def test_many_clients_and_slow_ones_do_not_stall_it(folder):
    with serving(folder) as server:
        server.get("/study/studies/lp")
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        for i, connection in enumerate(slow):  # some silent, some with half of a request
            if i % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            pages = list(pool.map(server.get, ["/", "/study/studies/lp", "/run/runs/plain", "/nothing"] * 50))
        assert [page.status for page in pages] == [200, 200, 200, 404] * 50
        assert time.monotonic() - start < 20  # of 200 pages at once, on a machine that may be busy
        for connection in slow:
            connection.close()
        assert server.peak_megabytes() < 100


def test_a_slow_client_is_cut_off(server):
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(1)
    connection.sendall(b"GET / HTTP/1.1\r\n")
    start = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - start < 40:
            connection.sendall(b"X")
            with contextlib.suppress(TimeoutError):
                if connection.recv(4096) == b"":
                    break
    assert time.monotonic() - start < 20
    assert server.get("/").status == 200


def test_oversized_requests_are_refused(server):
    connection = socket.create_connection(("127.0.0.1", server.port))
    with contextlib.suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"a" * 1_000_000 + b"\r\n\r\n")
    connection.close()
    with contextlib.suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
        assert server.get("/" + "a" * 100_000).status >= 400
    assert server.get("/").status == 200


def test_fifty_runs_of_ten_thousand_points(tmp_path):
    """Processor time of the server: what a first view takes on a machine that is not busy."""
    study = SyntheticStudy(tmp_path / "study", axes={"norm.p": [1, 1.5, 2, 3, 4]}, folds=10, steps=40, every=10)
    rows = "".join(json.dumps(row) + "\n" for row in losses(10_000))
    for metrics in (tmp_path / "study").rglob("metrics.jsonl"):
        metrics.write_text(rows)
        record = json.loads((metrics.parent / "trial.json").read_text())
        (metrics.parent / "trial.json").write_text(json.dumps({**record, "val_loss": 1.5, "best_loss": 1.5}))
    for number in range(50):
        write_run(tmp_path / "runs" / f"run{number}", losses(1), 20_000)
        (tmp_path / "runs" / f"run{number}" / "metrics.jsonl").write_text(rows)
    assert len(study.variants()) * 10 == 50
    with serving(tmp_path) as server:  # many clients take one copy of the page
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            assert {page.status for page in pool.map(server.get, ["/study/study"] * 100)} == {200}
        assert server.peak_megabytes() < 100
    for path in ["/", "/study/study", "/run/runs/run3"]:
        with serving(tmp_path) as server:
            before = server.cpu_seconds()
            page = server.get(path)
            assert page.status == 200
            assert server.cpu_seconds() - before < 1.0, path
            assert server.peak_megabytes() < 100, path
            assert len(page.text) < 3_000_000


def test_names_are_escaped(browser, server):
    browser.log.clear(), browser.requests.clear()
    for path in ["", "study/studies/lp", "run/runs/" + urllib.parse.quote(HOSTILE)]:
        browser.open(server.link + path)
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert "<img" not in server.get("/" + path).text
        time.sleep(0.5)  # the page looks once more by itself
    assert browser.log == []
    assert {urllib.parse.urlsplit(url).netloc for url in browser.requests} == {f"127.0.0.1:{server.port}"}


def wait_for(browser, expression, seconds=120):
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(AssertionError):  # a page that is just being left answers with an error
            if browser.evaluate(expression):
                return
        assert time.monotonic() < end, expression
        time.sleep(0.1)


def test_new_points_arrive_without_reload(browser, tmp_path):
    write_run(tmp_path / "run", losses(20))
    metrics = tmp_path / "run" / "metrics.jsonl"
    with serving(tmp_path) as server:
        browser.open(server.link + "run/run")
        browser.evaluate("window.same_page = true")
        browser.click("#loss input[data-axis=y][value='1'] + span")
        browser.click("#loss .key[data-series='0']")
        browser.evaluate("document.querySelector('section details').open = true")
        path = "document.querySelector('#loss .wide .view .series .line').getAttribute('d')"
        before = browser.evaluate(path)
        with metrics.open("a") as rows:
            rows.write(json.dumps({"step": 60, "loss": 0.5, "val_loss": 0.75}) + "\n")
        wait_for(browser, f"{path} !== {json.dumps(before)}", 30)
        assert browser.evaluate("window.same_page")
        assert "step 60 of 100" in browser.evaluate("document.querySelector('.progress').textContent")
        # What the reader chose stays chosen.
        assert browser.evaluate("document.querySelector('#loss input[data-axis=y][value=\"1\"]').checked")
        assert browser.evaluate("document.querySelector('#loss .key[data-series=\"0\"]').classList.contains('off')")
        assert not browser.evaluate("document.querySelector('#loss .key[data-series=\"1\"]').classList.contains('off')")
        assert browser.evaluate("document.querySelector('section details').open")
        server.stop()
        wait_for(browser, "!document.getElementById('connection').hidden", 30)
    browser.log.clear()  # of the connection that was refused


@pytest.fixture(scope="module")
def live_study(text, tmp_path_factory):
    """A real study with `compare --serve`."""
    folder = tmp_path_factory.mktemp("live") / "study"
    settings = ["norm.scheme=[none,qknorm]", "data.fold=[0,5]", *TINY, "train.max_steps=1000", "train.eval_every=50",
                "train.log_every=50", "probe.every=500"]
    process = subprocess.Popen([str(BINARY), "compare", "--data", str(text), "--out", str(folder), "--serve", "--jobs",
                                "2", "--quiet", "--nice", "0", "--set", *settings],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    link = None
    for line in process.stderr:
        if line.startswith("live: "):
            link = line.split()[1]
            break
    yield process, link, folder
    process.kill()
    process.communicate()


def test_a_study_grows_in_the_browser_while_it_runs(browser, live_study):
    process, link, folder = live_study
    browser.log.clear(), browser.requests.clear()
    browser.open(link, 1280, 900)
    browser.evaluate("window.same_page = true")
    done = "Number(document.querySelector('.progress strong').textContent.split(' ')[0])"
    points = "document.querySelector('#folds .wide .view').outerHTML.length"
    first, size = browser.evaluate(done), browser.evaluate(points)
    wait_for(browser, f"{done} > {first}")
    wait_for(browser, f"{points} > {size}")
    assert browser.evaluate("window.same_page")
    for width, dark in [(1280, True), (390, False), (390, True)]:
        browser.open(link, width, 900, dark)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("document.querySelector('.verdict').textContent.length") > 10
        colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
        browser.click("a[href='/']")
        wait_for(browser, "location.pathname === '/' && document.readyState === 'complete'")
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        browser.click(".entries a")
        wait_for(browser, "location.pathname.startsWith('/study/') && document.readyState === 'complete'")
    wait_for(browser, f"{done} === 100", 400)
    assert process.wait(120) == 0
    assert (folder / "report.html").exists()
    assert {urllib.parse.urlsplit(url).netloc for url in browser.requests} == {urllib.parse.urlsplit(link).netloc}
    assert [line for line in browser.log if "ERR_" not in line] == []  # the server ends with the study


def test_serve_goes_with_a_study_that_is_run(text):
    done = run("compare", "--data", text, "--budget", "1m", "--dry-run", "--serve", check=2)
    assert "--serve" in done.stderr
