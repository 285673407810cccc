"""The scene of tests/data/jaw_mug.c, taken apart: the hand and the mug as models of their own."""

import copy
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from common import BUILD

DT_S = 2e-3
CLOSE_N = 20.0
PALM_HEIGHT_M = 0.055
FINGERS = ("close-1", "close+1")


def write_jaw_mug(folder: Path) -> Path:
    """The whole scene: floor, mug, and the palm on a slide with a servo."""
    generator = BUILD / "tests" / "data" / "jaw_mug"
    subprocess.run([generator, folder], check=True, stdout=subprocess.DEVNULL)
    return folder / "jaw_mug.xml"


def write_parts(scene: Path) -> tuple[Path, Path]:
    """hand.xml (the palm with its fingers and their motors) and mug.xml beside the scene."""
    whole = ElementTree.parse(scene).getroot()
    paths = []
    for name, body in (("hand", "palm"), ("mug", "mug")):
        part = copy.deepcopy(whole)
        part.set("model", name)
        world = part.find("worldbody")
        assert world is not None
        for child in list(world):
            if child.get("name") != body:
                world.remove(child)
        actuators = part.find("actuator")
        assert actuators is not None
        if name == "mug":
            part.remove(actuators)
        else:
            for actuator in list(actuators):
                if actuator.get("name") not in FINGERS:
                    actuators.remove(actuator)
        path = scene.with_name(f"{name}.xml")
        ElementTree.ElementTree(part).write(path)
        paths.append(path)
    return paths[0], paths[1]
