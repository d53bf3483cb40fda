"""Modules, schemes and optimisers."""
import copy
import json
import math
import subprocess
import typing

import pytest
import torch
from conftest import BINARY
from torch import nn

import normlab
from normlab import schemes
from normlab.nn import QKNormAttention, constrain_
from normlab.optim import Muon, clip_heads_, qk_clip_


def pair(norm="none", **options):
    """Our module and PyTorch's with the same weights."""
    torch.manual_seed(1)
    theirs = nn.MultiheadAttention(24, 4, **options)
    ours = QKNormAttention(24, 4, norm=norm, **options)
    missing, unexpected = ours.load_state_dict(theirs.state_dict(), strict=False)
    assert not unexpected and set(missing) <= {"gain"}
    return ours, theirs


def causal_mask(t, s):
    return torch.ones(t, s, dtype=bool).triu(1)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masks", ["", "attn", "float", "heads", "padding", "attn padding"])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}, {"kdim": 10, "vdim": 12}], ids=str)
def test_without_a_norm_it_is_multihead_attention(options, masks, need_weights):
    ours, theirs = pair(**options)
    torch.manual_seed(2)
    t, s, b = 5, 7, 3
    order = (lambda x: x) if options.get("batch_first") else (lambda x: x.transpose(0, 1))
    q, k, v = order(torch.randn(b, t, 24)), order(torch.randn(b, s, ours.kdim)), order(torch.randn(b, s, ours.vdim))
    mask = {"attn": causal_mask(t, s), "float": torch.randn(t, s), "heads": torch.rand(b * 4, t, s) > 0.9}
    padding = torch.arange(s) >= torch.tensor([[7], [5], [6]])
    keys = masks.split()
    call = dict(attn_mask=mask[keys[0]] if keys and keys[0] in mask else None, need_weights=need_weights,
                key_padding_mask=padding if "padding" in keys else None, average_attn_weights=False)
    for mine, other in zip(ours(q, k, v, **call), theirs(q, k, v, **call)):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, atol=2e-6, rtol=1e-5)


def test_one_sequence_without_a_batch_dimension():
    ours, theirs = pair()
    x = torch.randn(5, 24)
    for mine, other in zip(ours(x, x, x), theirs(x, x, x)):
        torch.testing.assert_close(mine, other, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("norm", ["none", "lp", "rms", "layer"])
def test_the_fused_path_and_the_masked_one_agree(norm):
    torch.manual_seed(1)
    layer = QKNormAttention(24, 4, norm=norm, p=2.5, batch_first=True, soft_cap=3.0)
    x = torch.randn(2, 6, 24)
    fused, _ = layer(x, x, x, need_weights=False, is_causal=True)
    masked, _ = layer(x, x, x, attn_mask=causal_mask(6, 6))
    torch.testing.assert_close(fused, masked, atol=2e-6, rtol=1e-5)
    masked, weights = layer(x, x, x, is_causal=True)
    torch.testing.assert_close(fused, masked, atol=2e-6, rtol=1e-5)
    assert weights.shape == (2, 6, 6) and not weights[0, 0, 1:].any()


def test_inside_an_encoder_layer_it_is_not_bypassed():
    """In inference, PyTorch replaces the attention of an encoder layer by a kernel of its own when it may."""
    layer = nn.TransformerEncoderLayer(24, 4, batch_first=True, dropout=0.0)
    layer.self_attn = QKNormAttention(24, 4, p=2.0, batch_first=True)
    x = torch.randn(2, 6, 24)
    trained = layer.train()(x)
    with torch.inference_mode():
        torch.testing.assert_close(layer.eval()(x), trained)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    padding = torch.arange(6) >= torch.tensor([[6], [4]])
    with torch.inference_mode():
        torch.testing.assert_close(encoder(x, src_key_padding_mask=padding)[:, :4], encoder(
            torch.cat([x[:1], x[1:].index_fill(1, torch.tensor([4, 5]), 9.0)]), src_key_padding_mask=padding)[:, :4])


def test_it_trains_compiled_with_dropout():
    layer = QKNormAttention(24, 4, dropout=0.2, batch_first=True)
    step = torch.compile(lambda x: layer(x, x, x, need_weights=False, is_causal=True)[0].square().mean(),
                         fullgraph=True, backend="aot_eager")
    step(torch.randn(2, 6, 24)).backward()
    assert layer.gain.grad.abs().min() > 0 and layer.in_proj_weight.grad.isfinite().all()


@pytest.mark.parametrize("wrong, message", [
    (lambda x: QKNormAttention(10, 3), "multiple of num_heads; got 10 and 3"),
    (lambda x: QKNormAttention(24, 4)(x, x, x, attn_mask=torch.zeros(3, 3)), r"attn_mask must have shape \[6, 6\] or"),
    (lambda x: QKNormAttention(24, 4)(x, x, x, key_padding_mask=torch.zeros(6, 2)), r"key_padding_mask must have shape"),
    (lambda x: constrain_(nn.Linear(2, 2), "rms"), "no constraint on weights; expected one of ngpt, angpt"),
    (lambda x: constrain_(nn.Linear(2, 2), "ngtp"), "did you mean ngpt"),
    (lambda x: Muon(nn.Linear(2, 2), lr=0.0), "lr must be above 0"),
    (lambda x: Muon([{"params": [torch.zeros(3)], "muon": True}]), "Muon updates matrices"),
    (lambda x: qk_clip_(nn.Linear(2, 2)), "no QKNormAttention with track_stats"),
    (lambda x: clip_heads_(torch.ones(4, 2), torch.ones(4, 2), torch.ones(3)), "one entry per head"),
])
def test_bad_input(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(torch.randn(6, 2, 24))


def test_schemes_are_those_of_the_program():
    rows = json.loads(subprocess.run([BINARY, "schemes", "--json"], capture_output=True, text=True, check=True).stdout)
    assert [row["name"] for row in rows] == list(schemes.catalogue)
    fields = {key.removeprefix("norm.") for key in rows[0]["fields"]} - {"scheme"}
    texts = {"name", "title", "equation", "source", "recommended"}
    assert fields == set(typing.get_type_hints(schemes.Scheme)) - texts
    for row in rows:
        ours = schemes.find(row["name"])
        assert ours.equation == row["equation"] and dict(ours.recommended) == row["recommended"]
        for key in fields:
            text, value = row["fields"][f"norm.{key}"], getattr(ours, key)
            assert text == {True: "true", False: "false"}[value] if isinstance(value, bool) else \
                text == value or float(text) == value
    assert schemes.find("cosine").gain_max == 100.0 and schemes.find("lp").gain_max == math.inf
    assert schemes.find("rms").learn_gain is True and schemes.find("grouped").qk_groups == 2


def blocks():
    torch.manual_seed(3)
    return nn.ModuleDict({"embedding": nn.Embedding(9, 8), "up": nn.Linear(8, 16), "down_proj": nn.Linear(16, 8),
                          "norm": nn.LayerNorm(8)})


def test_ngpt_normalises_along_the_embedding():
    model = blocks()
    before = copy.deepcopy(model)
    assert constrain_(model, "ngpt") is model
    for name, dim in (("embedding", 1), ("up", 1), ("down_proj", 0)):
        weight, old = model[name].weight, before[name].weight
        torch.testing.assert_close(weight, old / old.norm(dim=dim, keepdim=True))
    assert torch.equal(model["norm"].weight, before["norm"].weight) and torch.equal(model["up"].bias, before["up"].bias)


def test_angpt_shrinks_rows_into_the_ball():
    model = blocks()
    with torch.no_grad():
        model["up"].weight[0].zero_()
        model["up"].weight[1].mul_(0.5 / model["up"].weight[1].norm())
        model["down_proj"].weight.mul_(5)
    small = model["up"].weight[1].clone()
    constrain_(model, "angpt")
    assert torch.equal(model["up"].weight[1], small) and not model["up"].weight[0].any()
    torch.testing.assert_close(model["down_proj"].weight.norm(dim=1), torch.ones(8))
    constrain_(model, "angpt", start=True)
    torch.testing.assert_close(model["up"].weight[1:].norm(dim=1), torch.ones(15))


@pytest.mark.parametrize("scale, name", [("original", "original"), ("match_rms_adamw", "match_rms_adamw")])
def test_muon_is_that_of_pytorch_in_float32(scale, name, monkeypatch):
    """PyTorch's orthogonalises in bfloat16; here it is made to do so in float32."""
    from torch.optim import _muon
    plain = _muon._zeropower_via_newtonschulz
    monkeypatch.setattr(_muon.torch, "bfloat16", torch.float32)
    torch.manual_seed(4)
    weights = [nn.Parameter(torch.randn(shape)) for shape in ((6, 4), (4, 9), (5, 5))]
    others = [nn.Parameter(w.detach().clone()) for w in weights]
    ours = Muon([{"params": weights, "muon": True}], lr=0.02, weight_decay=0.1, scale=scale)
    theirs = torch.optim.Muon(others, lr=0.02, weight_decay=0.1, adjust_lr_fn=name)
    assert plain is _muon._zeropower_via_newtonschulz
    for step in range(10):
        for a, b in zip(weights, others):
            a.grad = torch.randn(a.shape, generator=torch.Generator().manual_seed(step))
            b.grad = a.grad.clone()
        ours.step(), theirs.step()
    for a, b in zip(weights, others):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_muon_leaves_the_rest_to_adamw():
    torch.manual_seed(5)
    model = nn.ModuleDict({"embedding": nn.Embedding(7, 8), "attn": QKNormAttention(8, 2), "head": nn.Linear(8, 7)})
    twin = copy.deepcopy(model)
    rest = [p for name, p in twin.named_parameters() if name not in ("attn.in_proj_weight", "attn.out_proj.weight")]
    matrices = [p for p in rest if p.dim() == 2]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                               {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0}], lr=3e-3,
                              betas=(0.9, 0.95))
    muon = Muon(model, lr=0.02, adamw_lr=3e-3, weight_decay=0.1)
    assert [group["maps"] for group in muon.param_groups if group["muon"]] == [1, 3]
    for step in range(5):
        for net in (model, twin):
            torch.manual_seed(step)
            for p in net.parameters():
                p.grad = torch.randn_like(p)
        muon.step(), adamw.step()
    for (name, a), b in zip(model.named_parameters(), twin.parameters()):
        assert not torch.equal(a, b) if name in ("attn.in_proj_weight", "attn.out_proj.weight") else \
            torch.allclose(a, b, atol=1e-6), name
    whole, parts = model["attn"].in_proj_weight.detach().clone(), []
    model["attn"].in_proj_weight.grad = grad = torch.randn(24, 8)
    state = muon.state[model["attn"].in_proj_weight]["momentum"].clone()
    for i in range(3):
        part = nn.Parameter(whole[8 * i:8 * i + 8].clone())
        part.grad = grad[8 * i:8 * i + 8]
        single = Muon([{"params": [part], "muon": True}], lr=0.02, weight_decay=0.1)
        single.state[part]["momentum"] = state[8 * i:8 * i + 8].clone()
        single.step()
        parts.append(part.detach())
    muon.step()
    torch.testing.assert_close(model["attn"].in_proj_weight.detach(), torch.cat(parts))


def test_muon_resumes_from_its_state():
    def run(steps, saved=None):
        torch.manual_seed(6)
        net = nn.Linear(5, 4)
        muon = Muon(net, lr=0.02)
        if saved:
            net.load_state_dict(saved[0]), muon.load_state_dict(saved[1])
        for step in steps:
            for p in net.parameters():
                p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(step))
            muon.step()
        return copy.deepcopy((net.state_dict(), muon.state_dict()))

    whole, resumed = run(range(6)), run(range(3, 6), run(range(3)))
    assert all(torch.equal(whole[0][key], resumed[0][key]) for key in whole[0])


def test_qk_clip_brings_logits_down_to_tau():
    torch.manual_seed(7)
    layer = QKNormAttention(24, 4, norm="none", batch_first=True, track_stats=True)
    with torch.no_grad():
        layer.in_proj_weight[:24].mul_(torch.tensor([40.0, 1.0, 1.0, 30.0]).repeat_interleave(6)[:, None])
    x = torch.randn(3, 9, 24)
    layer(x, x, x, need_weights=False)
    before, weights = layer.stats.max_logit, layer.in_proj_weight.detach().clone()
    assert (before > 5).tolist() == [True, False, False, True] and torch.equal(layer.max_logit, before)
    qk_clip_(nn.Sequential(layer), tau=5.0)
    assert layer.max_logit.max() == -math.inf
    assert torch.equal(layer.in_proj_weight[6:18], weights[6:18]) and torch.equal(layer.in_proj_weight[48:], weights[48:])
    layer(x, x, x, need_weights=False)
    torch.testing.assert_close(layer.stats.max_logit, before.clamp(max=5.0), rtol=1e-5, atol=1e-5)


def test_qk_clip_of_shared_keys_scales_queries_alone():
    w_q, w_k = torch.ones(8, 3), torch.ones(4, 3)
    clip_heads_(w_q, w_k, torch.tensor([10.0, 400.0, 100.0, 200.0]))
    assert w_q[::2, 0].tolist() == [1.0, 0.25, 1.0, 0.5] and (w_k == 1).all()
    assert normlab.nn is not None
