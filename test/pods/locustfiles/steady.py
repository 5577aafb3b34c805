"""The users of users.py, on a busy machine."""
import patient  # noqa: F401
from users import Steady  # noqa: F401
