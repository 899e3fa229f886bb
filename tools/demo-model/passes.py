"""Forward and backward passes without a stop between host and GPU, captured as CUDA graphs, one per shape.

The arithmetic is that of transformers' classes; only what would make the host wait (masks built from data, boolean
indexing) is written out here. A model this small spends most of its time starting kernels otherwise.
"""

import torch
import torch.nn.functional as F

from model import POOL


def masks(length, window, device):
    """Causal attention needs no mask; a window needs one as soon as it is shorter than the row."""
    sliding = None
    if length > window:
        place = torch.arange(length, device=device)
        distance = place[:, None] - place[None]
        sliding = ((distance >= 0) & (distance < window))[None, None]
    return {"full_attention": None, "sliding_attention": sliding}


def picture_rows(model, batch):
    """Soft tokens of pictures that fill their grids."""
    tower, positions = model.model.vision_tower, batch["positions"]
    hidden = tower.patch_embedder(batch["patches"], positions, torch.zeros_like(positions[..., 0], dtype=torch.bool))
    hidden = tower.encoder(inputs_embeds=hidden, attention_mask=None, pixel_position_ids=positions).last_hidden_state
    count, _, width = hidden.shape
    columns, rows = batch["grid"]
    pooled = hidden.float().reshape(count, rows // POOL, POOL, columns // POOL, POOL, width).mean((2, 4)).flatten(1, 2)
    return model.model.embed_vision(inputs_embeds=(pooled * width**0.5).to(hidden.dtype))


def sound_rows(model, batch):
    """Soft tokens of clips; those of padding come last and are not used."""
    tower = model.model.audio_tower
    hidden, valid = tower.subsample_conv_projection(batch["mel"], batch["frames"])
    positions = tower.rel_pos_enc(hidden)
    place = torch.arange(hidden.shape[1], device=hidden.device)
    distance = place[:, None] - place[None]
    near = (distance >= 0) & (distance < tower.config.attention_context_left - 1)
    mask = tower._convert_4d_mask_to_blocked_5d((near[None] & valid[:, None, :])[:, None])
    for layer in tower.layers:
        hidden = layer(hidden, attention_mask=mask, position_embeddings=positions)
    return model.model.embed_audio(inputs_embeds=tower.output_proj(hidden))


def loss_of(model, batch):
    """Cross-entropy of what the model should write."""
    text, ids, config = model.model.language_model, batch["ids"], model.config
    with torch.autocast(ids.device.type, torch.bfloat16, cache_enabled=False):
        soft = picture_rows(model, batch) if "patches" in batch else sound_rows(model, batch) if "mel" in batch else None
        here = (ids == config.image_token_id) | (ids == config.audio_token_id)
        known = torch.where(here, 0, ids)
        embedded = text.embed_tokens(known)
        if soft is not None:
            order = (here.cumsum(1) - 1).clamp(min=0)[..., None].expand(-1, -1, soft.shape[-1])
            embedded = torch.where(here[..., None], soft.to(embedded.dtype).gather(1, order), embedded)
        hidden = text(inputs_embeds=embedded, per_layer_inputs=text.get_per_layer_inputs(known, None), use_cache=False,
                      attention_mask=masks(ids.shape[1], config.text_config.sliding_window, ids.device)).last_hidden_state
        logits = model.lm_head(hidden)
    cap = config.text_config.final_logit_softcapping
    logits = cap * torch.tanh(logits[:, :-1].float() / cap)
    return F.cross_entropy(logits.flatten(0, 1), batch["labels"][:, 1:].flatten(), ignore_index=-100)


class Passes:
    """Adds gradients of batches; a shape seen for the first time is captured."""

    def __init__(self, model, device):
        self.model, self.graphs, self.pool = model, {}, None
        self.capturing = device == "cuda"

    def prepare(self, kind, batch, weight):
        """Captures the batch's shape if it is new; spoils gradients, so that it comes before any pass of a step."""
        key = self.key(kind, batch)
        if not self.capturing or key in self.graphs:
            return False
        static = {name: value.clone() if torch.is_tensor(value) else value for name, value in batch.items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                (weight * loss_of(self.model, static)).backward()
        torch.cuda.current_stream().wait_stream(side)
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool):
                loss = loss_of(self.model, static)
                (weight * loss).backward()
                loss = loss.detach()
        except RuntimeError as problem:
            print(f"no graph of {key}: {problem}", flush=True)
            self.capturing = False
        else:
            self.graphs[key] = graph, static, loss
        return True

    def add(self, kind, batch, weight):
        """One forward and backward pass; the loss."""
        key = self.key(kind, batch)
        if key not in self.graphs:
            loss = loss_of(self.model, batch)
            (weight * loss).backward()
            return loss.detach()
        graph, static, loss = self.graphs[key]
        for name, value in batch.items():
            if torch.is_tensor(value):
                static[name].copy_(value, non_blocking=True)
        graph.replay()
        # Graphs share their memory: the next one overwrites this.
        return loss.clone()

    @staticmethod
    def key(kind, batch):
        return kind, *(tuple(value.shape) if torch.is_tensor(value) else value for value in batch.values())
