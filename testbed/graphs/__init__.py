"""Drawn examples of overlays: a few nodes of the real code, formed in virtual time, and one publication followed."""
