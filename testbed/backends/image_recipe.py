"""The node image as data: what it is made of, the name that follows from it, and the archive an engine loads.

A node brings its own program (the zipapp is mounted), so the image holds a Python and a small shell, nothing else.
"""

import hashlib
import io
import json
import tarfile

REPOSITORY = "landslide-testbed-node"
PUBLISHED = "python:3.13-slim"  # taken where a registry can be reached
PACKAGES = ("python3-minimal", "libpython3-stdlib", "busybox-static")  # else: from these packages
UNNEEDED = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/lib/*/gconv/*",
    "/usr/lib/python3*/pydoc_data/*",
)
# Run by mmdebstrap's shell with the image's root as $1. Compiled modules save each of hundreds of nodes half a second.
HOOKS = (
    'chroot "$1" /usr/bin/python3 -c "import sys; sys.exit(sys.version_info < (3, 11))"',
    'chroot "$1" /bin/busybox mkdir -p /usr/local/bin /proc /sys',
    'chroot "$1" /bin/busybox --install -s /usr/local/bin',
    'echo root:x:0:0:root:/:/bin/sh > "$1/etc/passwd"',
    'test -e "$1/usr/bin/sh" || ln -s busybox "$1/usr/bin/sh"',
    'chroot "$1" /bin/sh -c "python3 -m compileall -q /usr/lib/python3.*"',
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEBIAN_ARCHITECTURES = {"amd64": "amd64", "arm64": "arm64", "arm": "armhf", "386": "i386"}


def tag(architecture: str) -> str:
    """The image's name; another recipe is another name, so an old image is never mistaken for a new one."""
    recipe = json.dumps([PUBLISHED, PACKAGES, UNNEEDED, HOOKS, architecture])
    return f"{REPOSITORY}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def build_command(suite: str, architecture: str) -> list[str]:
    """mmdebstrap's arguments; it reads the package sources from its standard input and writes the layer to its output.

    It is asked to end when its parent does, whatever ended that.
    """
    return [
        *("setpriv", "--pdeathsig", "TERM"),
        "mmdebstrap",
        "--variant=extract",  # no package is configured: no scripts run, half the time, a quarter of the size
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--architectures={_DEBIAN_ARCHITECTURES.get(architecture, architecture)}",
        f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNNEEDED),
        *(f"--extract-hook={hook}" for hook in HOOKS),
        suite,
        "-",  # the layer
        "-",  # the package sources
    ]


def write_archive(layer: io.BufferedRandom, archive: io.BufferedRandom, architecture: str) -> None:
    """A docker-archive of one layer. Unlike `docker import` it says which architecture the image is for."""
    layer.seek(0)
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
    about_layer = tarfile.TarInfo("layer.tar")
    about_layer.size = layer.tell()
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": [f"PATH={_PATH}"], "Cmd": ["python3"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created_by": f"mmdebstrap {' '.join(PACKAGES)}"}],
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [tag(architecture)], "Layers": ["layer.tar"]}]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        layer.seek(0)
        tar.addfile(about_layer, layer)
        for path, content in ((name, config), ("manifest.json", json.dumps(manifest).encode())):
            about = tarfile.TarInfo(path)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
