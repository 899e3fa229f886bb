#!/usr/bin/env python3
"""Joins the parts train.py writes.

    join.py FOLDER OUT.safetensors
"""

import sys
from pathlib import Path

from safetensors.numpy import load_file, save_file

if len(sys.argv) != 3:
    sys.exit(__doc__)
tensors = {}
for part in sorted(Path(sys.argv[1]).glob("weights-*.safetensors")):
    tensors |= load_file(part)
save_file(tensors, sys.argv[2])
