"""``kstonet serve``."""

from __future__ import annotations

import signal
from typing import Annotated, Any

import typer

from kstonet.cli import options
from kstonet.cli.output import session
from kstonet.cli.service import MOST_BYTES, Server, Service
from kstonet.cli.stored import StoredModel
from kstonet.tables import InputError


def serve(
    model: options.ModelArgument,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 is all of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="NUMBER", help="Port; 0 takes a free one.")] = 8000,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Largest request.")] = MOST_BYTES,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Answer predictions over HTTP: GET /health, GET /schema, POST /predict.

    A request is {"rows": [{"area": 80, "city": "Bern"}], "coverage": 0.9}, the answer {"predictions": [...]}, with the
    columns of 'kstonet predict'. There is no encryption and no password: put it behind a proxy that has them.
    """
    with session(quiet, debug=debug) as output:
        service = Service(StoredModel.open(model), max_body)
        try:
            server = Server((host, port), service, quiet)
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port or --host.") from error
        place = f"http://{host}:{server.server_address[1]}"
        try_at = place.replace("0.0.0.0", "127.0.0.1")
        output.say(f"Serving {model} on {place}; Ctrl-C ends it. Try: curl {try_at}/schema")

        def end(number: int, frame: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGTERM, end)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.say("Stopped.")
        finally:
            signal.signal(signal.SIGTERM, before)
            server.server_close()
