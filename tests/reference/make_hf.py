"""Writes hf-gemma2.safetensors, hf-gemma3.safetensors and hf-llama3.safetensors: small random models of transformers.

    python3 tests/reference/make_hf.py FOLDER

Windows, caps and the scalar of the queries are such that leaving any of them out changes the logits. The third is a
Llama with the scaled rotary positions of Llama 3.1.
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

SIZES = dict(vocab_size=65, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
             head_dim=8, max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None)
GEMMA = dict(SIZES, query_pre_attn_scalar=12, sliding_window=4)
LOCAL, GLOBAL = "sliding_attention", "full_attention"
MODELS = {
    "gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        **GEMMA, num_hidden_layers=2, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
    "gemma3": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **GEMMA, num_hidden_layers=3, layer_types=[LOCAL, LOCAL, GLOBAL],
        rope_parameters={LOCAL: {"rope_type": "default", "rope_theta": 100.0},
                         GLOBAL: {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0}})),
    "llama3": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **SIZES, num_hidden_layers=2, rope_parameters={
            "rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16})),
}


def reference(name, model):
    model.set_attn_implementation("eager")  # the others leave the caps out
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    tokens = torch.randint(0, 65, (2, 12))
    out = model(tokens, labels=tokens)
    out.loss.backward()
    tensors = {"inputs.tokens": tokens, "expect.logits": out.logits.detach(),
               "expect.loss": out.loss.detach().reshape(1)}
    for key, parameter in model.named_parameters():  # a tied head is not listed again
        tensors["weights." + key] = parameter.detach().contiguous()
        tensors["expect.grads." + key] = parameter.grad.contiguous()
    metadata = {"source": model.config.model_type, "optimizer": "{}", "config": json.dumps(model.config.to_dict())}
    save_file(tensors, pathlib.Path(sys.argv[1]) / f"hf-{name}.safetensors", metadata)


for number, (name, make) in enumerate(MODELS.items()):
    torch.manual_seed(number)
    reference(name, make().eval())
