"""hugging_face.py train|generate|bert: models of transformers, made from their configurations."""
import sys

import torch
import transformers
from common import end, set_up_torch, show, steps, weights


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=2048, hidden_size=256, intermediate_size=768, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=1024,
        bos_token_id=0, eos_token_id=1, pad_token_id=2))


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=2048, hidden_size=256, intermediate_size=1024, num_hidden_layers=4,
        num_attention_heads=8))


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for step in steps():
        words = torch.randint(3, 2048, (4, 48 + step * 17 % 160), device=device)
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(input_ids=words, labels=words).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        show(step, loss.item())
    end(weights(model))


def generate(model):
    model.eval()
    for step in steps():
        words = torch.randint(3, 2048, (2, 20), device=device)
        out = model.generate(
            input_ids=words, attention_mask=torch.ones_like(words), do_sample=True, top_k=50,
            min_new_tokens=16, max_new_tokens=16)
        show(step, *out[:, 20:].flatten().tolist())
    end(weights(model))


device = set_up_torch()
kind = sys.argv[1]
chosen = bert() if kind == "bert" else llama()
(generate if kind == "generate" else train)(chosen.to(device))
