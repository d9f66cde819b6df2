"""In every Python that a test starts: at its end nothing is looked at for garbage.

Once torch is imported, that takes half a second, and hundreds of tests start such a process.
"""

import atexit
import gc

atexit.register(gc.freeze)
