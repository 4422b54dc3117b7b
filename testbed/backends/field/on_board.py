"""Where things are on a board. The roles in `playbooks/` have the same paths."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OnBoard:
    """The places of one lab on a board."""

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
        """links.json: how the board's line is shaped."""
        return f"{self.settings}/links.json"

    @property
    def data(self) -> str:
        """What the node and the capture write."""
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
