#!/usr/bin/env python3
"""The quick half of tests/attack: each flood of HTTP/2 frames for a moment. The daemon's memory
stays bounded, an honest caller is answered meanwhile, and the daemon ends well."""

import os
import subprocess
import sys
from pathlib import Path

FLOODS = Path(__file__).parent.parent / "attack" / "floods.py"
COMMAND = [sys.executable, str(FLOODS), "--quick", "--seconds", "1.5", "--connections", "20"]
sys.exit(subprocess.run([*COMMAND, "--tribod", os.environ["TRIBOD"]]).returncode)
