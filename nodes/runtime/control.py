"""The control socket: one JSON object a line each way, over a Unix socket that is part of no network."""

import asyncio
import json
import os
from typing import Any

from nodes.runtime.lifecycle import NoTransition
from nodes.runtime.node import Node, NodeFailed, Refused
from nodes.runtime.publisher import InvalidPublication

LONGEST_LINE = 256 * 1024 * 1024  # a timeline of a million publications


def respond(node: Node, request: Any) -> dict[str, Any]:
    """The node's response to a request; it never raises for a bad one."""
    try:
        return {"ok": True, **_response(node, request)}
    except (Refused, NoTransition, InvalidPublication) as error:
        return {"ok": False, "error": str(error)}


def _response(node: Node, request: Any) -> dict[str, Any]:
    if not isinstance(request, dict):
        raise Refused('a question is a JSON object like {"do": "status"}')
    match request.get("do"):
        case "status":
            return node.status()
        case "overlay":
            return {"overlay": node.core.describe()}
        case "go":
            node.go()
            return {}
        case "publish":
            topic, priority, size = (request.get(name) for name in ("topic", "priority", "size"))
            return {"id": node.publish(topic, priority, size, request.get("place", ()))}
        case "play":
            return {"accepted": node.play(request.get("start_ns"), request.get("actions"))}
        case other:
            raise Refused(f"{other!r} is no question; there are status, overlay, go, publish, play")


class ControlSocket:
    """Serves requests as long as it is open."""

    def __init__(self, path: str, node: Node) -> None:
        self._path = path
        self._node = node

    async def __aenter__(self) -> "ControlSocket":
        try:
            self._server = await asyncio.start_unix_server(
                self._serve_client, self._path, limit=LONGEST_LINE
            )
        except OSError as error:
            raise NodeFailed(f"cannot open the control socket {self._path}: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        if os.path.exists(self._path):  # noqa: PTH110 - pathlib costs a node memory
            os.unlink(self._path)  # noqa: PTH108

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while line := await reader.readline():
                try:
                    request = json.loads(line)
                except (ValueError, RecursionError):
                    reply = {"ok": False, "error": "that is not a line of JSON"}
                else:
                    reply = respond(self._node, request)
                writer.write(json.dumps(reply).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the other side has disconnected, or its line has no end: it gets no response
        except asyncio.CancelledError:
            pass  # the node ends; Python 3.11 would print a traceback of it
        finally:
            writer.close()
