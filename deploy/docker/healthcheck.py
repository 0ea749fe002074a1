#!/usr/local/bin/python
"""Whether the Axon of this container is alive: 0 if a probe answers 200, 1 if none does. Knows no settings.

    axon-healthcheck [PATH]

A container runs one role, and each role has its probes on a port of its own: 8001 gateway, 8002 worker, 8003 control.
PATH is ``/livez`` by default, which says nothing about services; ``/readyz`` says whether it can take work now.
"""

import sys
from http.client import HTTPConnection, HTTPException

PORTS = (8001, 8002, 8003)
TIMEOUT_S = 2.0


def answers(port: int, path: str) -> bool:
    """Whether a probe of this port says yes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "/livez"
    sys.exit(0 if any(answers(port, asked) for port in PORTS) else 1)
