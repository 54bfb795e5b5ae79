"""A prediction service: a stored model over HTTP, JSON in and out, on the standard library's server."""

from __future__ import annotations

import json
import threading
import warnings
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pandas as pd

from kstonet import __version__
from kstonet._words import counted
from kstonet.cli.prediction import prediction_table
from kstonet.cli.stored import StoredModel
from kstonet.cli.training import plain
from kstonet.tables import InputError
from kstonet.tables.columns import CATEGORY
from kstonet.tables.encoding import EMPTY

MOST_BYTES = 1_000_000  # of a request
MOST_ROWS = 10_000  # of a request
LEVELS = (0.95,)
PATIENCE = 30.0  # seconds without a byte after which a connection is closed


class RequestError(Exception):
    """A request that cannot be answered: the status, and what is wrong with it."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Service:
    """What the service answers, without the transport.

    Parameters
    ----------
    stored : StoredModel
        The model, the encoding of its table and its target.
    most_bytes : int
        Largest body of a request.
    """

    stored: StoredModel
    most_bytes: int = MOST_BYTES
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def health(self) -> dict[str, Any]:
        """Whether the service answers, and with which model."""
        return {"status": "ok", "model": type(self.stored.model).__name__, "kstonet": __version__}

    def schema(self) -> dict[str, Any]:
        """What a row must hold, as JSON Schema, and what a prediction holds."""
        properties: dict[str, Any] = {date.name: {"type": "string", "format": "date"} for date in self.stored.dates}
        made = {name for date in self.stored.dates for name in date.outputs}
        required = list(properties)
        for column in self.stored.encoder.columns_:
            if column.name in made:
                continue
            kind = {CATEGORY: "string"}.get(column.kind, column.kind)
            if column.kind == EMPTY:
                continue
            own: dict[str, Any] = {"type": kind if column.fill is None else [kind, "null"]}
            if column.kind == CATEGORY:
                own["enum"] = [*column.categories, *([] if column.fill is None else [None])]
            properties[column.name] = own
            required += [] if column.fill is not None else [column.name]
        row = {"type": "object", "properties": properties, "required": required}
        return {
            "target": None if self.stored.target is None else list(self.stored.target.names) or self.stored.target.name,
            "task": "classification" if hasattr(self.stored.model, "classes_") else "regression",
            "classes": plain(getattr(self.stored.model, "classes_", None)),
            "request": {
                "type": "object",
                "properties": {
                    "rows": {"type": "array", "items": row, "minItems": 1, "maxItems": MOST_ROWS},
                    "coverage": {"type": ["number", "array"], "default": LEVELS[0]},
                    "unknown": {"enum": ["error", "ignore"], "default": "error"},
                },
                "required": ["rows"],
            },
        }

    def predict(self, body: bytes) -> dict[str, Any]:
        """Predictions of the rows of a request, with intervals."""
        request = _object(body)
        rows = request.get("rows")
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise RequestError(HTTPStatus.BAD_REQUEST, '"rows" must be a list of objects, one per row, such as {"area": 80}.')
        if len(rows) > MOST_ROWS:
            message = f"{counted(len(rows), 'row')} are more than the {MOST_ROWS:,} of one request; send them in parts."
            raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        levels, unknown = request.get("coverage", list(LEVELS)), request.get("unknown", "error")
        table = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1), dtype=object)
        # One at a time: linear algebra has threads of its own, and the record of warnings belongs to the whole process.
        with self._turn, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                X = self.stored.conformed(table, unknown)
                found = prediction_table(
                    self.stored.model, X, levels if isinstance(levels, list) else [levels], self.stored.target_names
                )
            except (InputError, ValueError, TypeError) as error:
                raise RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        ids = [name for name in self.stored.ids if name in table.columns]
        kept = table[ids].to_dict("records")
        predictions = [own | each for own, each in zip(kept, found.to_dict("records"), strict=True)]
        return {"predictions": plain(predictions), "notes": [str(each.message) for each in caught]}


def _object(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, f"the body is not JSON ({error}).") from error
    if not isinstance(request, dict):
        raise RequestError(HTTPStatus.BAD_REQUEST, 'the body must be an object, {"rows": [...]}.')
    return request


class Handler(BaseHTTPRequestHandler):
    """GET /health, GET /schema and POST /predict."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = f"kstonet/{__version__}"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Health and schema."""
        service = self.server.service
        known = {"/": service.schema, "/health": service.health, "/schema": service.schema}
        answer = known.get(self.path.partition("?")[0])
        if answer is None:
            self._refuse(RequestError(HTTPStatus.NOT_FOUND, "use GET /health, GET /schema or POST /predict."))
        else:
            self._answer(HTTPStatus.OK, answer())

    def do_POST(self) -> None:
        """Predictions."""
        try:
            body = self._body()
            if self.path.partition("?")[0] != "/predict":
                raise RequestError(HTTPStatus.NOT_FOUND, "use GET /health, GET /schema or POST /predict.")
            answer = self.server.service.predict(body)
        except RequestError as error:
            self._refuse(error)
        except Exception as error:  # the service outlives a request; what went wrong is for the log, not for the client
            self.log_error("unexpected %s: %s", type(error).__name__, error)
            self._refuse(RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected error; see the log of the service."))
        else:
            self._answer(HTTPStatus.OK, answer)

    def _body(self) -> bytes:
        """The body, which must say how long it is and not be too long."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise RequestError(HTTPStatus.LENGTH_REQUIRED, "the request needs a Content-Length.") from None
        most = self.server.service.most_bytes
        if not 0 <= length <= most:
            said = f"the body may have at most {most:,} bytes; it has {length:,}."
            raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)
        return self.rfile.read(length)

    def _refuse(self, error: RequestError) -> None:
        self.close_connection = True  # a body may be unread
        self._answer(error.status, {"error": str(error)})

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say what was asked, unless the service is quiet."""
        if not self.server.quiet:
            super().log_message(format, *args)


class Server(ThreadingHTTPServer):
    """Listens; a thread per connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], service: Service, quiet: bool = False) -> None:
        self.service, self.quiet = service, quiet
        super().__init__(address, Handler)
