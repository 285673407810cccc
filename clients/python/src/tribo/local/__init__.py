"""libtribo in this process, without a daemon: the same models, steps, certificates and grasps.

    model = tribo.local.Model("hand.xml")
    worlds = tribo.local.Worlds(model, 64)
    answer = worlds.step(10, controls=[0.5])     # a tribo.StepAnswer, as of a session

Needs cffi (`pip install 'tribo[local]'`) and libtribo.so, which the wheel with the programs holds.
"""

from tribo.local.hands import HandModel, sample_poses, with_found_tool
from tribo.local.library import find_library, library
from tribo.local.model import Model
from tribo.local.worlds import State, Stepper, Worlds

__all__ = [
    "HandModel",
    "Model",
    "State",
    "Stepper",
    "Worlds",
    "find_library",
    "library",
    "sample_poses",
    "with_found_tool",
]
