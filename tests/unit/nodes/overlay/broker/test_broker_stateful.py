"""Overlays under any story of crashes, broken links, cut off brokers and moves: what was promised is kept."""

from hypothesis import settings

from mesh_stories import MeshStories

TestMeshStories = MeshStories.TestCase
TestMeshStories.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
