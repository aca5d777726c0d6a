"""The class behind `hurray.open`."""

# The extension puts them here when it is loaded.
__all__ = ["File", "ReadCounts"]
