"""What the tests of everything that writes files save."""

import hurray
import numpy as np

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def pair():
    """A group of two."""
    members = [hurray.asarray(VALUES), hurray.asarray(VALUES * 2)]
    return hurray.Composite("group", shape=VALUES.shape, dtype=hurray.float32, members=members)
