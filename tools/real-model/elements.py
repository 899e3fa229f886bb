"""Writes elements.jsonl and held-out.jsonl: what Jay Kominek's Elements Database says about the chemical elements, as prompts and completions.

Usage: elements.py DICTIONARY
The database is in the public domain. DICTIONARY is usr/share/dictd/elements.dict.dz of Debian's package dict-elements 20001107-a-9.1:
  apt-get download dict-elements && dpkg-deb --extract dict-elements_*.deb unpacked
"""

import gzip
import json
import pathlib
import re
import sys

ENTRY = re.compile(r"(\w+)\nSymbol: (\w+)\nAtomic number: (\d+)\nAtomic weight: \S+\n(.+)", re.DOTALL)
# Texts about heavier elements are not by the same author.
HEAVIEST = 103
# Characters of a completion: whole sentences, which fit sequences of 96 tokens with the chat template.
MOST = 200


def main():
    text = gzip.open(sys.argv[1], "rt", encoding="latin-1").read()
    pairs = []
    for paragraph in re.split(r"\n\s*\n", text):
        entry = ENTRY.fullmatch(paragraph.strip())
        if entry is None or int(entry[3]) > HEAVIEST or not paragraph.isascii():
            continue
        completion = ""
        # Braces mark links; a point after a capital letter ends an initial.
        for sentence in re.findall(r"\S.*?[^A-Z]\.(?= |$)", " ".join(re.sub(r"[{}]", "", entry[4]).split())):
            if len(completion) + len(sentence) > MOST:
                break
            completion = f"{completion} {sentence}".strip()
        if completion:
            pairs.append({"prompt": f"What is {entry[1].lower()}?", "completion": completion})
    folder = pathlib.Path(__file__).parent
    # Every fifth one is held out.
    for name, held_out in [("elements", False), ("held-out", True)]:
        lines = [json.dumps(pair) + "\n" for i, pair in enumerate(pairs) if (i % 5 == 4) == held_out]
        (folder / f"{name}.jsonl").write_text("".join(lines))
        print(f"{name}: {len(lines)}")


main()
