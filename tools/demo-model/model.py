"""The model: E2B in small, built from transformers' own Gemma 4 classes."""

import torch
from transformers import Gemma4AudioConfig, Gemma4Config, Gemma4ForConditionalGeneration, Gemma4TextConfig, Gemma4VisionConfig

SLIDING, GLOBAL = "sliding_attention", "full_attention"
CONTEXT = 4096
POOL, PATCH = 3, 16
SLIDING_HEAD, GLOBAL_HEAD = 64, 128


def config(tokenizer):
    """Every feature of E2B, with rows of 256 where K-quants need them."""
    token = tokenizer.token_to_id
    size = tokenizer.get_vocab_size()
    text = Gemma4TextConfig(
        vocab_size=size, vocab_size_per_layer_input=size, hidden_size=256, intermediate_size=512, num_hidden_layers=10,
        num_attention_heads=4, num_key_value_heads=1, head_dim=SLIDING_HEAD, global_head_dim=GLOBAL_HEAD, hidden_size_per_layer_input=32,
        layer_types=[GLOBAL if layer % 5 == 4 else SLIDING for layer in range(10)], num_kv_shared_layers=5, use_double_wide_mlp=True,
        sliding_window=128, max_position_embeddings=CONTEXT, final_logit_softcapping=30.0, tie_word_embeddings=True,
        pad_token_id=0, eos_token_id=1, bos_token_id=2,
    )
    vision = Gemma4VisionConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, head_dim=32,
        patch_size=PATCH, pooling_kernel_size=POOL, position_embedding_size=128, use_clipped_linears=True,
    )
    audio = Gemma4AudioConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, subsampling_conv_channels=[128, 16], output_proj_dims=256, use_clipped_linears=True,
    )
    return Gemma4Config(
        text_config=text, vision_config=vision, audio_config=audio, image_token_id=token("<|image|>"), audio_token_id=token("<|audio|>"),
        video_token_id=token("<|video|>"), boi_token_id=token("<|image>"), eoi_token_id=token("<image|>"), boa_token_id=token("<|audio>"),
        eoa_token_index=token("<audio|>"), tie_word_embeddings=True,
    )


def build(tokenizer, seed=0):
    """An untrained model."""
    torch.manual_seed(seed)
    model = Gemma4ForConditionalGeneration(config(tokenizer))
    with torch.no_grad():
        for name, module in model.named_modules():
            # Scores are not divided by the root of the head's width: the norms start there instead, or every softmax is saturated.
            if name.endswith(("q_norm", "k_norm")):
                module.weight.fill_(len(module.weight) ** -0.25)
            if hasattr(module, "position_embedding_table"):
                module.position_embedding_table.normal_(0, 0.02)
    for layer in model.model.language_model.layers:
        # A constant in the published classes; here it is learnt.
        scale = layer.layer_scalar
        del layer.layer_scalar
        layer.layer_scalar = torch.nn.Parameter(scale.detach().clone())
    return model


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def clipped_linears(model):
    """The tower's linears with bounds."""
    return [module for module in model.modules() if getattr(module, "use_clipped_linears", False) and hasattr(module, "linear")]


def open_bounds(model):
    """No clamps, as before training: new ones follow from what the trained linears see."""
    for linear in clipped_linears(model):
        for name, side in (("input_min", -1), ("input_max", 1), ("output_min", -1), ("output_max", 1)):
            getattr(linear, name).fill_(side * float("inf"))
