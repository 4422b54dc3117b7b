"""What every mapping of a topology file has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Any mapping of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
