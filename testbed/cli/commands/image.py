"""Commands on the images that nodes run: image build, list, remove."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.progress import Incomplete, Note
from testbed.topology.diagnostics.hints import did_you_mean
from testbed.topology.schema.sections import PLATFORMS

Platforms = Annotated[
    list[str] | None,
    typer.Option(
        "--platform",
        metavar="PLATFORM[,PLATFORM...]",
        help=f"Platforms: {', '.join(PLATFORMS)}, or all. Default: the platform of this machine.",
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IMAGE",
        help="Images by name or tag. Default: all images of testbed.",
        show_default=False,
    ),
]
OnlyOld = Annotated[
    bool, typer.Option("--old", help="Only images that this version of testbed does not use.")
]


def register(app: typer.Typer) -> None:
    image = typer.Typer(
        help="Build, list and remove container images. `up` builds missing images itself.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    image.command(epilog="Example: testbed image build --platform linux/amd64,linux/arm64")(build)
    image.command("list", epilog="Example: testbed image list --json")(list_images)
    image.command(epilog="Example: testbed image remove --old")(remove)
    app.add_typer(image, name="image")


def build(platform: Platforms = None, as_json: AsJson = False) -> None:
    """Build the image of testbed's nodes, from a registry if one is reachable, else from Debian packages."""
    from testbed.backends.docker.engine import engine
    from testbed.backends.docker.image_recipe import NodeImage
    from testbed.backends.docker.images import ImageOwner, ensure_images, own_platform
    from testbed.backends.docker.platforms import Platform, inspect_machine, judge

    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; nothing half-made is left"
        asked = [Platform.parse(name) for name in _platforms(platform or [])]
        wanted = [NodeImage(its) for its in asked or [own_platform(engine())]]
        images = ensure_images(wanted, ImageOwner(terminal.emit))
        machine = inspect_machine()
        verdicts = {its: judge(its.platform, machine) for its in wanted}
        rows = [
            {**asdict(images[its]), "runs": verdict.runs, "how": verdict.how, "fix": verdict.fix}
            for its, verdict in verdicts.items()
        ]
        terminal.document({"images": rows})
        terminal.show(_built(rows))
        for row in rows:
            if not row["runs"]:
                terminal.emit(
                    Note(f"{row['platform']} does not run here yet ({row['how']}): {row['fix']}")
                )


def _platforms(written: list[str]) -> list[str]:
    """Names with commas or as several options; known ones, each once."""
    names = [name.strip() for words in written for name in words.split(",") if name.strip()]
    for name in names:
        if name not in (*PLATFORMS, "all"):
            raise InputError(f"there is no platform {name!r}", did_you_mean(name, PLATFORMS))
    return list(PLATFORMS) if "all" in names else list(dict.fromkeys(names))


def _built(rows: list[dict[str, Any]]) -> Table:
    table = Table("platform", "image", "size", "runs here", title="images for nodes")
    for row in rows:
        how = row["how"] if row["runs"] else "[yellow]no[/]"
        table.add_row(row["platform"], row["name"], _size(row["size"]), how)
    return table


def list_images(as_json: AsJson = False) -> None:
    """List the images of testbed with their contents, their sizes and the labs that use them."""
    from testbed.backends.docker.images import our_images

    with Terminal(as_json) as terminal:
        rows = [asdict(image) for image in our_images()]
        terminal.document({"images": rows})
        terminal.show(_listed(rows) if rows else "no images yet; `testbed image build` makes one")


def _listed(rows: list[dict[str, Any]]) -> Table:
    """Show tags instead of whole names, which would take too much width."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.caption = "`testbed image remove TAG` removes one; whole names with --json"
    for column in ("tag", "platform", "made"):
        table.add_column(column, no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for column in ("with", "used by"):
        table.add_column(column, overflow="fold")
    for row in rows:
        made = row["created"][:10] + ("" if row["current"] else " [yellow]old[/]")
        tag, users = row["name"].rpartition(":")[2], ", ".join(row["used_by"])
        table.add_row(tag, row["platform"], made, _size(row["size"]), row["content"], users)
    return table


def remove(names: Names = None, old: OnlyOld = False, as_json: AsJson = False) -> None:
    """Remove images of testbed, except those that a lab uses. Other images are not changed."""
    from testbed.backends.docker.images import chosen, our_images, remove_images

    with Terminal(as_json) as terminal:
        removed, kept = remove_images(chosen(our_images(), names or [], old))
        terminal.document(
            {
                "removed": [image.name for image in removed],
                "in_use": [{"name": image.name, "used_by": image.used_by} for image in kept],
            }
        )
        for image in removed:
            terminal.show(f"removed {image.name} ({image.platform}, {_size(image.size)})")
        for image in kept:
            users = ", ".join(image.used_by) or "a container"
            terminal.emit(Incomplete(f"{image.name} is in use by {users}, and stays"))
        if not removed and not kept:
            terminal.show("nothing to remove")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
