"""A registry of images on loopback: one image for several platforms, each of one small layer."""

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
Blob = tuple[str, bytes]  # media type, content


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer_of(text: str) -> bytes:
    """A tar file with one file in it."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        about = tarfile.TarInfo("platform")
        about.size = len(text)
        tar.addfile(about, io.BytesIO(text.encode()))
    return file.getvalue()


def contents(platforms: dict[str, dict[str, str]]) -> tuple[dict[str, Blob], Blob]:
    """All blobs by digest, and the index that lists the platforms."""
    blobs: dict[str, Blob] = {}

    def add_blob(kind: str, content: bytes) -> dict[str, object]:
        blobs[digest(content)] = (kind, content)
        return {"mediaType": kind, "size": len(content), "digest": digest(content)}

    listed = []
    for name, platform in platforms.items():
        layer = layer_of(name)
        config = {**platform, "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": add_blob(CONFIG, json.dumps({**config, "config": {}}).encode()),
            "layers": [add_blob(LAYER, gzip.compress(layer, mtime=0))],
        }
        listed.append({**add_blob(MANIFEST, json.dumps(manifest).encode()), "platform": platform})
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
    return blobs, (INDEX, json.dumps(index).encode())


@contextmanager
def registry(platforms: dict[str, dict[str, str]]) -> Iterator[str]:
    """The address of a registry that serves this image under every name."""
    blobs, index = contents(platforms)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            digest_or_tag = self.path.rsplit("/", 1)[-1]
            kind, content = ("application/json", b"{}")
            if "/manifests/" in self.path or "/blobs/" in self.path:
                kind, content = blobs.get(digest_or_tag, index)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", digest(content))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
