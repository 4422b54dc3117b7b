"""Nodes as containers: the Docker engine, images for every processor, and external nodes."""
