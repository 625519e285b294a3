"""Times a step of GPT-2 124M under PyTorch on a GPU: torch_gpt2.py [STEPS]

Batches of 16 x 1024 tokens, bf16 where autocast says so, fused AdamW, compiled. Prints a line of JSON: the
best step in milliseconds, the time to the first one, and the most memory that was allocated.
"""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 50304, 1024, 768, 12, 12, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(CONTEXT, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    begin = time.time()
    torch.set_float32_matmul_precision("high")
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    compiled = torch.compile(model)
    tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1), device="cuda")
    best, first = float("inf"), None
    for _ in range(steps):
        torch.cuda.synchronize()
        before = time.time()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        first = first or time.time() - begin
        best = min(best, time.time() - before)
    print(json.dumps({"step_ms": round(best * 1e3, 3), "first_s": round(first, 1),
                      "memory_mb": round(torch.cuda.max_memory_allocated() / 1e6, 1)}))


main()
