"""All entries of the zoo, in the order in which they are made and shown."""

import optimizers  # noqa: F401
import states  # noqa: F401
import accumulation  # noqa: F401
import loops  # noqa: F401
import stacks  # noqa: F401
import again  # noqa: F401
import models  # noqa: F401
import metrics  # noqa: F401
import attention  # noqa: F401
import jumps  # noqa: F401
import spectral  # noqa: F401
from entry import ENTRIES


def by_name():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names), "two entries have one name"
    return {entry.name: entry for entry in ENTRIES}
