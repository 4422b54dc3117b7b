"""The recipes of images: their contents, the names that follow from them, and the archive an engine loads. Pure.

A node's program is mounted as a zipapp, so its image holds only a Python and a small shell.
"""

import hashlib
import io
import json
import shlex
import tarfile
from dataclasses import dataclass
from pathlib import Path

from testbed.backends.docker import image_root
from testbed.backends.docker.platforms import Platform

REPOSITORY = "landslide-testbed"  # all our images' names begin so
PUBLISHED = "python:3.13-slim"  # a node's image where a registry can be reached
NODE_PACKAGES = ("python3-minimal", "libpython3-stdlib")  # else: from these packages
SHELL = "busybox-static"
UNNEEDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
UNNEEDED_BY_NODES = (
    "/usr/lib/*/gconv/*",
    "/usr/lib/python3*/pydoc_data/*",
    "/usr/lib/python3*/test/*",
)
PLATFORM_LABEL = "testbed.platform"
CONTENT_LABEL = "testbed.content"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ROOT_SCRIPT = Path(image_root.__file__)


@dataclass(frozen=True, slots=True)
class NodeImage:
    """The image of our own nodes."""

    platform: Platform

    @property
    def name(self) -> str:
        """Depends on the recipe, so an old image is never mistaken for a new one."""
        return _name("node", self.platform, PUBLISHED, *_made_of(self))

    @property
    def content(self) -> str:
        return "nodes"


@dataclass(frozen=True, slots=True)
class PackagesImage:
    """An image of Debian packages and a shell, for an external node.

    The packages are unpacked, not configured: none of their scripts runs, so no user is made and no service starts.
    """

    packages: tuple[str, ...]
    platform: Platform

    @property
    def name(self) -> str:
        return _name("packages", self.platform, *_made_of(self))

    @property
    def content(self) -> str:
        return " ".join(self.packages)


@dataclass(frozen=True, slots=True)
class RegistryImage:
    """An image of a registry. It also gets a name of ours: its own name means only one platform at a time."""

    image: str
    platform: Platform

    @property
    def name(self) -> str:
        return _name("registry", self.platform, self.image)

    @property
    def content(self) -> str:
        return self.image


Wanted = NodeImage | PackagesImage | RegistryImage
Built = NodeImage | PackagesImage


def _name(kind: str, platform: Platform, *parts: str) -> str:
    recipe = json.dumps([str(platform), *parts])
    return f"{REPOSITORY}-{kind}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def _made_of(image: Built) -> tuple[str, ...]:
    return (*packages(image), *unneeded(image), _ROOT_SCRIPT.read_text())


def packages(image: Built) -> tuple[str, ...]:
    """The packages by name; what they depend on comes with them."""
    own = NODE_PACKAGES if isinstance(image, NodeImage) else tuple(sorted(image.packages))
    return (*own, SHELL)


def unneeded(image: Built) -> tuple[str, ...]:
    """Patterns of files that are left out."""
    return UNNEEDED + UNNEEDED_BY_NODES if isinstance(image, NodeImage) else UNNEEDED


def build_command(image: Built, suite: str, python: str) -> list[str]:
    """mmdebstrap's arguments; it reads the package sources from its standard input and writes the layer to its output.

    It gets SIGTERM when its parent ends for any reason. `python` runs `image_root`.
    """
    options = "--python" if isinstance(image, NodeImage) else ""
    return [
        *("setpriv", "--pdeathsig", "TERM"),
        "mmdebstrap",
        "--variant=extract",  # no package is configured: no scripts run, half the time, a quarter of the size
        "--skip=cleanup/apt",  # `image_root` does it
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--architectures={image.platform.debian}",
        f"--include={','.join(packages(image))}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in unneeded(image)),
        f'--extract-hook={shlex.quote(python)} -I {shlex.quote(str(_ROOT_SCRIPT))} "$1" {options}',
        suite,
        "-",  # the layer
        "-",  # the package sources
    ]


def write_archive(
    image: Built, layer: io.BufferedRandom, archive: io.BufferedRandom, created: str
) -> None:
    """Write a docker-archive of one layer. Unlike `docker import`, it contains the platform of the image."""
    layer.seek(0)
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
    about_layer = tarfile.TarInfo("layer.tar")
    about_layer.size = layer.tell()
    config = json.dumps(
        {
            "created": created,
            "architecture": image.platform.architecture,
            **({"variant": image.platform.variant} if image.platform.variant else {}),
            "os": "linux",
            "config": {
                "Env": [f"PATH={_PATH}"],
                "Cmd": ["python3" if isinstance(image, NodeImage) else "sh"],
                "Labels": {PLATFORM_LABEL: str(image.platform), CONTENT_LABEL: image.content},
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [
                {"created": created, "created_by": f"mmdebstrap {' '.join(packages(image))}"}
            ],
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        layer.seek(0)
        tar.addfile(about_layer, layer)
        for path, content in ((name, config), ("manifest.json", json.dumps(manifest).encode())):
            about = tarfile.TarInfo(path)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
