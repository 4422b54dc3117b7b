"""A deployment: the boards of a lab, saved in its state folder for later commands, and the paths on a board."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.backends.field.boards import Board, Uplink
from testbed.errors import TestbedError
from testbed.jsonfiles import read_json, write_json
from testbed.places import LabPlace


@dataclass(frozen=True, slots=True)
class Deployment:
    """The inventory, the boards, and the uplink between them and this machine's nodes (None: there is none)."""

    inventory: Path
    boards: tuple[Board, ...]
    uplink: Uplink | None = None

    def board(self, node: str) -> Board:
        """The board of this node."""
        for board in self.boards:
            if board.node == node:
                return board
        raise TestbedError(f"{node} has no board", "`testbed down` first, then deploy again")

    def inventories(self, own: Path) -> list[Path]:
        """The user's inventory, if it still exists, and ours, whose variables take precedence."""
        return [*([self.inventory] if self.inventory.exists() else []), own]

    def save(self, lab: LabPlace) -> None:
        """Save it for later commands."""
        folder(lab).mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(_record(lab), {**asdict(self), "inventory": str(self.inventory)})


def load(lab: LabPlace) -> Deployment:
    """The deployment of a lab with boards; TestbedError if its file is gone."""
    data = read_json(_record(lab))
    if not isinstance(data, dict):
        raise TestbedError(
            f"the deployment file of lab {lab.name} does not exist",
            f"`testbed down {lab.name} -i INVENTORY` clears the boards",
        )
    uplink = data["uplink"]
    return Deployment(
        Path(data["inventory"]),
        tuple(Board(**board) for board in data["boards"]),
        Uplink(**uplink) if uplink else None,
    )


def folder(lab: LabPlace) -> Path:
    """The lab's files on its boards; only its owner may read them."""
    return lab.folder / "boards"


def _record(lab: LabPlace) -> Path:
    return folder(lab) / "deployment.json"


NOT_YET = ""  # the fingerprint of a node whose setup was not completed
OUTDATED = "outdated"  # of a node that has to be set up again


class Deployed:
    """deployed.json: the nodes on boards, with their fingerprints and the settings of their links."""

    def __init__(self, lab: LabPlace) -> None:
        self._path = folder(lab) / "deployed.json"

    def all(self) -> dict[str, dict[str, Any]]:
        """node -> fingerprint, links (None: not shaped)."""
        return read_json(self._path) or {}

    def note(self, node: str, fingerprint: str, link: dict[str, Any] | None) -> None:
        """Record a node that was set up."""
        write_json(self._path, {**self.all(), node: {"fingerprint": fingerprint, "link": link}})

    def attempt(self, node: str) -> None:
        """Record the attempt of a setup, so that the board is cleared later in any case."""
        if node not in self.all():
            self.note(node, NOT_YET, None)

    def outdate(self, node: str) -> None:
        """Record that a node has to be set up again; its data is still on the board."""
        known = self.all().get(node)
        if known is not None and known["fingerprint"] != NOT_YET:
            self.note(node, OUTDATED, known["link"])


# Paths on a board. The roles in `playbooks/` use the same ones.


@dataclass(frozen=True, slots=True)
class BoardPaths:
    """The paths and units of one lab on a board."""

    lab: str

    @property
    def programs(self) -> str:
        return f"/opt/testbed/{self.lab}"

    @property
    def nodes_pyz(self) -> str:
        return f"{self.programs}/nodes.pyz"

    @property
    def settings(self) -> str:
        return f"/etc/testbed/{self.lab}"

    @property
    def links(self) -> str:
        """links.json: the shape of the board's link."""
        return f"{self.settings}/links.json"

    @property
    def data(self) -> str:
        """The folder of log, capture and journal."""
        return f"/var/lib/testbed/{self.lab}"

    @property
    def log(self) -> str:
        return f"{self.data}/node.jsonl"

    @property
    def journal(self) -> str:
        return f"{self.data}/journal"

    @property
    def control(self) -> str:
        return f"/run/testbed-{self.lab}/ctl"

    @property
    def node_unit(self) -> str:
        return f"testbed-node-{self.lab}.service"

    @property
    def capture_unit(self) -> str:
        return f"testbed-capture-{self.lab}.service"

    @property
    def links_unit(self) -> str:
        return f"testbed-links-{self.lab}.service"
