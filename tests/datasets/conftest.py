"""A web server on this machine, an empty cache, and no data folder."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kstonet.datasets import _download


class Site:
    """Pages by path: bytes, a status, or a list of those to be given one after the other (the last one stays)."""

    def __init__(self, url):
        self.url = url
        self.pages = {}
        self.requests = []
        self.headers = []
        self.announce = {}  # a false Content-Length by path
        self.release = threading.Event()  # ends a page that hangs

    def add(self, name, page):
        self.pages["/" + name] = page
        return f"{self.url}/{name}"


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.requests.append(self.path)
            site.headers.append(self.headers)
            page = site.pages.get(self.path, 404)
            if isinstance(page, list):
                page = page.pop(0) if len(page) > 1 else page[0]
            if page == "hang":
                site.release.wait(10)
                return
            if isinstance(page, int):
                self.send_error(page)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(site.announce.get(self.path, len(page))))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    site.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder, no waiting between attempts."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KSTONET_HOME", str(folder))
    monkeypatch.delenv("KSTONET_DATA", raising=False)
    monkeypatch.setattr(_download, "WAIT", 0.0)
    return folder
