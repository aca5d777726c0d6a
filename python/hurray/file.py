"""The class behind `hurray.open`."""

# The extension puts `File` here when it is loaded.
__all__ = ["File"]
