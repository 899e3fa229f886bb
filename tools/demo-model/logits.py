#!/usr/bin/env python3
"""Compares our engine's logits with transformers' on an exported file, text only.

    logits.py MODEL.gguf VOCAB.json RULLAMA [DEVICE]

The weights are the file's own, dequantised: what differs is the arithmetic alone.
"""

import json
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
from gguf import GGUFReader, quants
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import model
from export import gguf_name
from chat import pieces
from skills import chats


def from_file(path, tokenizer):
    """The transformers model with an exported file's text weights; the towers keep their random ones."""
    net = model.build(tokenizer).eval()
    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    with torch.no_grad():
        for name, weight in net.state_dict().items():
            if name.startswith("model.language_model.") and gguf_name(name) in tensors:
                tensor = tensors[gguf_name(name)]
                values = quants.dequantize(np.array(tensor.data), tensor.tensor_type)
                weight.copy_(torch.tensor(values).reshape(weight.shape))
    return net


def main(path, vocabulary, binary, device="cpu"):
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(vocabulary)
    net = from_file(path, tokenizer)
    rng = random.Random(9)
    prompts = [chats.conversation(rng, skill=skill) for skill in ("arithmetic", "tools", "story")]
    texts = ["".join(text for text, _ in pieces(case["messages"], case["tools"], case["thinking"])) for case in prompts]
    texts.append("".join(texts) * 2)
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        with torch.no_grad():
            expected = net(input_ids=torch.tensor([ids])).logits[0].numpy()
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/ids.json", "w") as file:
                json.dump(ids, file)
            subprocess.run([binary, "eval", path, "--device", device, "--cache", "f32", "--ids-file", f"{folder}/ids.json", "--out", f"{folder}/out.safetensors"],
                           check=True, capture_output=True)
            found = load_file(f"{folder}/out.safetensors")["logits"].reshape(-1, expected.shape[1])
        expected = expected[-len(found):]
        same = (found.argmax(-1) == expected.argmax(-1)).mean()
        print(f"{len(ids)} tokens: largest difference {np.abs(found - expected).max():.2g} of {np.abs(expected).max():.3g}, same best token {same:.1%}")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
