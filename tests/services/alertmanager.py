"""A real Alertmanager on a private port and folder, and a receiver that it notifies. Knows no alert."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.services.process import ServerProcess, free_port, private_folder
from tests.services.require import find


class AlertmanagerServer:
    """One server without peers. ``config`` is a whole configuration, in YAML or JSON."""

    def __init__(self, folder: Path, config: str) -> None:
        self.folder = private_folder(folder)
        self.port = free_port()
        path = self.folder / "alertmanager.yaml"
        path.write_text(config)
        path.chmod(0o644)
        binary = find("prometheus-alertmanager")
        assert binary is not None, "prometheus-alertmanager is not installed"
        listen = f"--web.listen-address=127.0.0.1:{self.port}"
        storage = f"--storage.path={self.folder / 'data'}"
        self._process = ServerProcess(
            [binary, f"--config.file={path}", storage, listen, "--cluster.listen-address="], self.folder
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it takes alerts."""
        self._process.start(self._ready)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def add(self, *alerts: dict[str, object]) -> None:
        """Sends it alerts, as Prometheus does: ``{"labels": {"alertname": …}, "annotations": {…}}``."""
        httpx.post(f"{self.url}/api/v2/alerts", json=list(alerts), timeout=30).raise_for_status()

    def alerts(self) -> set[str]:
        """The names of the alerts that it has."""
        answer = httpx.get(f"{self.url}/api/v2/alerts", timeout=30).raise_for_status()
        return {each["labels"]["alertname"] for each in answer.json()}

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notification of an Alertmanager."""

    receiver: str
    status: str
    """``firing`` or ``resolved``."""
    alerts: tuple[str, ...]


class NoticeReceiver:
    """A webhook on a loopback port; ``with`` opens and closes it."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    @property
    def notices(self) -> Sequence[Notice]:
        with self._lock:
            return tuple(self._notices)

    def __enter__(self) -> "NoticeReceiver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, body: bytes) -> None:
        said = json.loads(body)
        names = tuple(sorted({each["labels"]["alertname"] for each in said["alerts"]}))
        with self._lock:
            self._notices.append(Notice(receiver=said["receiver"], status=said["status"], alerts=names))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Does not log requests."""

        return Handler
