"""llama.py train|generate [LAYERS]: a language model like Llama, written out: rotary positions, RMS norms,
grouped queries, SwiGLU; training in bf16 with lengths that vary, or generation with a cache."""
import sys

import torch
from torch import nn
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights

DIM, HEADS, GROUPS, WORDS = 512, 8, 2, 4096


def rotate(x, start):
    half = x.shape[-1] // 2
    at = torch.arange(start, start + x.shape[-2], device=x.device, dtype=torch.float32)
    angle = at[:, None] / 10000 ** (torch.arange(half, device=x.device) / half)
    sin, cos = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = DIM // HEADS
        self.before, self.between = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.query = nn.Linear(DIM, DIM, bias=False)
        self.key_value = nn.Linear(DIM, 2 * GROUPS * self.head, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.up, self.down = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x, cache=None):
        batch, length, _ = x.shape
        start = cache[0].shape[2] if cache else 0
        y = self.before(x)
        q = self.query(y).view(batch, length, HEADS, self.head).transpose(1, 2)
        k, v = self.key_value(y).view(batch, length, 2 * GROUPS, self.head).transpose(1, 2).chunk(2, 1)
        q, k = rotate(q, start), rotate(k, start)
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        many = HEADS // GROUPS
        y = F.scaled_dot_product_attention(
            q, k.repeat_interleave(many, 1), v.repeat_interleave(many, 1), is_causal=length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, DIM))
        gate, up = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up), (k, v)


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(DIM), nn.Linear(DIM, WORDS, bias=False)

    def forward(self, words, caches=None):
        x, kept = self.embedding(words), []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, caches and caches[i])
            kept.append(cache)
        return self.head(self.norm(x)), kept


def train(model, device):
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    for step in steps():
        length = 64 + step * 37 % 450
        words = torch.randint(0, WORDS, (4, length + 1), device=device)
        with torch.autocast(device.type, torch.bfloat16):
            guess, _ = model(words[:, :-1])
        loss = F.cross_entropy(guess.float().flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        show(step, loss.item(), norm.item())
    end(weights(model))


@torch.no_grad()
def generate(model, device):
    model = model.to(torch.bfloat16)
    words, caches = torch.randint(0, WORDS, (4, 33), device=device), None
    for step in steps():
        guess, caches = model(words, caches)
        words = torch.multinomial(torch.softmax(guess[:, -1].float() / 0.8, -1), 1)
        if caches[0][0].shape[2] > 600:
            caches = [(k[:, :, :33], v[:, :, :33]) for k, v in caches]
        show(step, *words.flatten().tolist())
    end(words)


device = set_up_torch()
model = Model(int(sys.argv[2]) if len(sys.argv) > 2 else 6).to(device)
{"train": train, "generate": generate}[sys.argv[1]](model, device)
