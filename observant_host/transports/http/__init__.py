"""Streamable HTTP: modern, and the three legacy revisions that have it."""
