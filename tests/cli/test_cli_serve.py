"""The service: real requests over real connections, many at once, and none that breaks it."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import kstonet
from kstonet.cli.service import MOST_ROWS, Server, Service
from kstonet.cli.stored import StoredModel

ROW = {"area": 80.0, "city": "Bern", "balcony": True, "heat": "gas"}


@pytest.fixture(scope="module")
def address(regression):
    """A running service with a small limit on requests."""
    server = Server(("127.0.0.1", 0), Service(StoredModel.open(str(regression[1])), most_bytes=200_000), quiet=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address
    server.shutdown()
    server.server_close()


def ask(address, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(*address, timeout=60)
    content = json.dumps(body) if isinstance(body, dict | list) else body
    connection.request(method, path, content, headers or {})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_health_and_schema(address):
    assert ask(address, "GET", "/health") == (
        200,
        {"status": "ok", "model": "KStoNetRegressor", "kstonet": kstonet.__version__},
    )
    status, schema = ask(address, "GET", "/schema")
    assert (status, schema["target"], schema["task"]) == (200, "price", "regression")
    row = schema["request"]["properties"]["rows"]["items"]
    assert row["required"] == ["area", "city", "balcony", "heat"]
    assert row["properties"]["area"] == {"type": "number"}
    assert row["properties"]["city"] == {"type": "string", "enum": ["Bern", "Genève", "Zürich"]}


def test_predictions_are_those_of_the_command_line(address, regression, run):
    table = pd.read_csv(regression[0]).drop(columns="price")
    status, found = ask(address, "POST", "/predict", {"rows": table.to_dict("records"), "coverage": [0.8, 0.95]})
    expected = json.loads(run("predict", *regression[::-1], "--coverage", 0.8, "--coverage", 0.95, "--json").stdout)
    assert status == 200
    for ours, theirs in zip(found["predictions"], expected["predictions"], strict=True):
        assert ours == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 400, "the body is not JSON"),
        ("[1]", 400, "the body must be an object"),
        ({}, 400, '"rows" must be a list of objects'),
        ({"rows": []}, 400, '"rows" must be a list of objects'),
        ({"rows": [3]}, 400, '"rows" must be a list of objects'),
        ({"rows": [{"area": 80}]}, 422, "the model needs columns 'city', 'balcony', 'heat'"),
        ({"rows": [ROW | {"city": "Rome"}]}, 422, "column 'city' holds 'Rome' in row 1"),
        ({"rows": [ROW | {"area": None}]}, 422, "values are missing: column 'area' in row 1"),
        ({"rows": [ROW], "coverage": "90%"}, 422, "must lie strictly between 0 and 1"),
        ({"rows": [ROW], "coverage": 90}, 422, "must lie strictly between 0 and 1"),
        ({"rows": [ROW], "unknown": "guess"}, 422, "must be 'error' or 'ignore'"),
        ({"rows": [{}] * (MOST_ROWS + 1)}, 413, "send them in parts"),
        ("x" * 300_000, 413, "the body may have at most 200,000 bytes"),
    ],
)
def test_bad_requests_are_answered(address, body, status, message):
    found = ask(address, "POST", "/predict", body)
    assert found[0] == status
    assert message in found[1]["error"]
    assert ask(address, "GET", "/health")[0] == 200


def test_what_is_ignored_is_said(address):
    status, found = ask(address, "POST", "/predict", {"rows": [ROW | {"owner": "me", "city": "Rome"}], "unknown": "ignore"})
    assert status == 200
    assert any("ignored: column 'owner'" in note for note in found["notes"])


def test_unknown_places_and_broken_connections(address):
    assert ask(address, "GET", "/nothing")[0] == 404
    assert ask(address, "POST", "/nothing", {})[0] == 404
    with socket.create_connection(address) as raw:  # a request without a length
        raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"411" in raw.recv(200)
    with socket.create_connection(address) as raw:  # a client that goes away in the middle
        raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    assert ask(address, "GET", "/health")[0] == 200


def test_many_clients_at_once(address):
    """300 requests over 16 connections: every one is answered, with its own rows."""
    areas = np.linspace(20, 200, 300)
    alone = [
        ask(address, "POST", "/predict", {"rows": [ROW | {"area": area}]})[1]["predictions"][0]["mean"] for area in areas[::60]
    ]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda area: ask(address, "POST", "/predict", {"rows": [ROW | {"area": area}]}), areas))
    assert {status for status, _ in found} == {200}
    means = [answer["predictions"][0]["mean"] for _, answer in found]
    np.testing.assert_allclose(means[::60], alone)
    assert len(set(means)) > 250


def test_the_command_serves_until_it_is_stopped(regression):
    words = [sys.executable, "-m", "kstonet.cli", "serve", str(regression[1]), "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while "Try" not in said:
                said += process.stderr.readline()
            port = int(re.search(r"127\.0\.0\.1:(\d+)", said)[1])
            assert ask(("127.0.0.1", port), "POST", "/predict", {"rows": [ROW]})[0] == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_port_that_is_taken(run, regression, address):
    assert "choose another --port" in run("serve", regression[1], "--port", address[1], code=2).stderr
