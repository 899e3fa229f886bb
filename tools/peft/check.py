"""Loads adapter folders with PEFT itself and compares what it holds and computes with the files.

    check.py FOLDER...

Fails where PEFT misses a tensor, finds one too many, holds another number, or computes something else than W x + s B (A x).
"""

import math
import os
import pathlib
import sys

# PEFT would look for the base model's configuration on the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, get_peft_model_state_dict, inject_adapter_in_model, set_peft_model_state_dict
from safetensors.torch import load_file

PREFIX = "base_model.model."


def skeleton(tensors):
    """A module with a linear layer wherever the adapter has a pair: PEFT asks for no more of a model."""
    root = torch.nn.Module()
    paths = sorted(name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight"))
    for path in paths:
        rows = tensors[f"{path}.lora_B.weight"].shape[0]
        width = tensors[f"{path}.lora_A.weight"].shape[1]
        *parents, last = path.split(".")
        at = root
        for name in parents:
            if not hasattr(at, name):
                at.add_module(name, torch.nn.Module())
            at = getattr(at, name)
        at.add_module(last, torch.nn.Linear(width, rows, bias=False))
    return root, paths


def check(folder):
    tensors = load_file(folder / "adapter_model.safetensors")
    assert all(name.startswith(PREFIX) for name in tensors), "names without what PEFT puts in front of them"
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    config = LoraConfig.from_pretrained(folder)
    root, paths = skeleton(tensors)
    assert paths, f"{folder} has no pairs"
    model = inject_adapter_in_model(config, root)
    loaded = set_peft_model_state_dict(model, dict(tensors))
    missing = [name for name in loaded.missing_keys if "lora_" in name]
    assert not loaded.unexpected_keys and not missing, (loaded.unexpected_keys[:5], missing[:5])
    held = get_peft_model_state_dict(model)
    assert held.keys() == tensors.keys(), sorted(held.keys() ^ tensors.keys())[:5]
    assert all(torch.equal(held[name], tensors[name]) for name in tensors), "other numbers than in the file"
    scale = config.lora_alpha / (math.sqrt(config.r) if config.use_rslora else config.r)
    for path in paths:
        layer = model.get_submodule(path)
        a, b = tensors[f"{path}.lora_A.weight"], tensors[f"{path}.lora_B.weight"]
        x = torch.randn(3, a.shape[1])
        wanted = layer.base_layer(x) + scale * ((x @ a.float().T) @ b.float().T)
        torch.testing.assert_close(layer(x), wanted)
    print(f"{folder}: PEFT holds all {len(tensors)} tensors and computes with {len(paths)} pairs")


for name in sys.argv[1:]:
    check(pathlib.Path(name))
