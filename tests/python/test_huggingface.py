"""normlab.replace_attention on small random models of transformers."""
import dataclasses

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="replace_attention needs transformers")

import normlab.huggingface  # noqa: E402
import normlab.schemes  # noqa: E402

SIZES = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
WIDE = dict(intermediate_size=64, num_key_value_heads=2, head_dim=8)
TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **WIDE, **TOKENS)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES, **WIDE, **TOKENS)),
    "olmo2": lambda: transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**SIZES, **WIDE, **TOKENS)),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SIZES, **TOKENS, scale_attn_by_inverse_layer_idx=True)),
}
SCHEMES = ["none", "qknorm", "lp", "rms", "rms-gainless", "layernorm", "cosine", "grouped", "ssmax"]


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(1)
    model = MODELS[request.param]().eval()
    with torch.no_grad():  # the initial weights are so small that attention would be almost uniform
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(5.0)
    return model


@pytest.fixture
def tokens():
    return torch.randint(3, 40, (3, 12), generator=torch.Generator().manual_seed(2))


def test_none_changes_nothing(model, tokens):
    mask = torch.ones_like(tokens)
    mask[0, :4] = 0  # padding on the left
    with torch.no_grad():
        plain, masked = model(tokens).logits, model(tokens, attention_mask=mask).logits
        normlab.replace_attention(model, "none")
        torch.testing.assert_close(model(tokens).logits, plain, rtol=0, atol=1e-5)
        seen = mask.bool()
        torch.testing.assert_close(model(tokens, attention_mask=mask).logits[seen], masked[seen], rtol=0, atol=1e-5)


@pytest.mark.parametrize("scheme", SCHEMES[1:])
@pytest.mark.parametrize("model", ["llama", "gpt2"], indirect=True)
def test_a_scheme_changes_the_logits(model, tokens, scheme):
    plain = model(tokens).logits
    assert (normlab.replace_attention(model, scheme)(tokens).logits - plain).abs().max() > 1e-3


@pytest.mark.parametrize("model", ["qwen3"], indirect=True)
def test_rms_makes_a_llama_a_qwen3(model, tokens):
    llama = MODELS["llama"]().eval()
    missing = llama.load_state_dict(model.state_dict(), strict=False)
    assert not missing.missing_keys and all("_norm" in name for name in missing.unexpected_keys)
    expected = model(tokens).logits
    assert (llama(tokens).logits - expected).abs().max() > 1e-3
    torch.testing.assert_close(normlab.replace_attention(llama, "rms")(tokens).logits, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("scheme", ["qknorm", "lp", "rms"])
def test_it_trains(model, tokens, scheme):
    normlab.replace_attention(model.train(), scheme)
    own = {name for name, parameter in model.named_parameters() if ".normlab." in name}
    assert len(own) == (4 if scheme == "rms" else 2)  # q and k weights, or the gain, of two layers
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters() if name in own}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        loss = model(tokens, labels=tokens).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.8 * losses[0]
    after = dict(model.named_parameters())
    assert all(not torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cached_generation_equals_full_recomputation(model, tokens, scheme):
    normlab.replace_attention(model, scheme)
    mask = torch.ones_like(tokens)
    mask[1, :5] = 0
    options = dict(max_new_tokens=8, do_sample=False, output_logits=True, return_dict_in_generate=True)
    cached = model.generate(tokens, attention_mask=mask, use_cache=True, **options)
    full = model.generate(tokens, attention_mask=mask, use_cache=False, **options)
    assert torch.equal(cached.sequences, full.sequences)
    torch.testing.assert_close(torch.stack(cached.logits), torch.stack(full.logits), rtol=0, atol=2e-5)


@pytest.mark.parametrize("model", ["llama", "qwen3"], indirect=True)
def test_a_static_cache(model, tokens):
    normlab.replace_attention(model, "lp")
    options = dict(max_new_tokens=8, do_sample=False, disable_compile=True)
    dynamic = model.generate(tokens, **options)
    assert torch.equal(model.generate(tokens, cache_implementation="static", **options), dynamic)


@pytest.mark.parametrize("scheme", ["none", "qknorm", "lp", "cosine"])
def test_the_operator_and_its_composite_form_agree(model, tokens, scheme, monkeypatch):
    calls = []
    operator = normlab.huggingface.HuggingFaceAttention.operator
    monkeypatch.setattr(normlab.huggingface.HuggingFaceAttention, "operator",
                        lambda self, *arguments: calls.append(1) or operator(self, *arguments))
    fused = normlab.replace_attention(model, scheme)(tokens).logits
    assert len(calls) == 2  # once per layer
    for module in model.modules():
        if isinstance(module, normlab.huggingface.HuggingFaceAttention):
            module.has_operator = False
    torch.testing.assert_close(model(tokens).logits, fused, rtol=0, atol=2e-5)
    assert len(calls) == 2


def test_padding_does_not_reach_other_tokens(model, tokens):
    normlab.replace_attention(model, "ssmax").eval()
    alone = model(tokens[:1]).logits
    padded = torch.cat((tokens[:1], torch.zeros(1, 3, dtype=torch.long)), 1)
    mask = (padded != 0).long()
    torch.testing.assert_close(model(padded, attention_mask=mask).logits[:, :12], alone, rtol=0, atol=2e-5)


def test_fields_replace_those_of_the_row(model, tokens):
    normlab.replace_attention(model, "lp", p=2.0, gain="head", gain_init=4.0)
    gains = [value for name, value in model.named_parameters() if name.endswith("normlab.qk_gain")]
    assert [gain.tolist() for gain in gains] == [[4.0] * 4] * 2
    by_row = model(tokens).logits
    normlab.replace_attention(model, "qknorm", gain="head", gain_init=4.0)
    torch.testing.assert_close(model(tokens).logits, by_row)


def test_a_scheme_of_ones_own(model, tokens):
    own = dataclasses.replace(normlab.schemes.find("lp"), p=2.0, gain="head", gain_init=4.0)
    by_object = normlab.replace_attention(model, own)(tokens).logits
    normlab.replace_attention(model, "qknorm", gain="head", gain_init=4.0)
    torch.testing.assert_close(model(tokens).logits, by_object)


def test_the_initial_gain_follows_the_length(model):
    normlab.replace_attention(model, "qknorm", length=256)
    gain = next(value for name, value in model.named_parameters() if name.endswith("normlab.qk_gain"))
    assert gain.item() == pytest.approx(15.9943, abs=1e-4)  # log2(256^2 - 256)


def test_half_precision(model, tokens):
    logits = normlab.replace_attention(model, "lp").bfloat16()(tokens).logits
    assert logits.dtype == torch.bfloat16 and logits.isfinite().all()


@pytest.mark.parametrize("scheme, fields, message", [
    ("qknrm", {}, "there is no scheme 'qknrm'. Did you mean 'qknorm'?"),
    ("ngpt", {}, "the scheme 'ngpt' changes more than attention"),
    ("lp", {"p": -1}, "norm.p"),
    ("lp", {"colour": 1}, "norm.colour"),
    ("qknorm", {"gain": "model"}, "layers have gains"),
])
def test_schemes_that_cannot_be(scheme, fields, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        normlab.replace_attention(MODELS["llama"](), scheme, **fields)


def test_other_architectures_are_refused():
    with pytest.raises(ValueError, match="got a model of type 'Linear', expected llama, qwen3, olmo2, gpt2"):
        normlab.replace_attention(torch.nn.Linear(2, 2))
