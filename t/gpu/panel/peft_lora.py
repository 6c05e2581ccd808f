"""peft: low-rank adapters of a Llama are trained, merged into it, and taken out again."""
import peft
import torch
import transformers
from common import end, set_up_torch, show, steps, weights

device = set_up_torch()
llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=1024, hidden_size=256, intermediate_size=512, num_hidden_layers=4,
    num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=256,
    bos_token_id=0, eos_token_id=1, pad_token_id=2))
model = peft.get_peft_model(llama, peft.LoraConfig(
    r=8, lora_alpha=16, lora_dropout=0.1, target_modules=["q_proj", "v_proj"],
    task_type="CAUSAL_LM")).to(device)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), 1e-3)
for step in steps():
    words = torch.randint(3, 1024, (4, 32 + step * 13 % 96), device=device)
    with torch.autocast(device.type, torch.bfloat16):
        loss = model(input_ids=words, labels=words).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    merged = []
    if step % 16 == 15:
        model.merge_adapter()
        with torch.no_grad():
            merged.append(model(input_ids=words).logits)
        model.unmerge_adapter()
    show(step, loss.item(), *merged)
end(weights(model))
