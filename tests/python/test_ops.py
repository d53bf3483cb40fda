"""The operators against PyTorch's, and everything that PyTorch asks of an operator."""
import math

import pytest
import torch
from torch.nn import functional as F

import normlab

INF = math.inf


def reference(q, k, v, *, norm="lp", p=3.0, gain=None, scale=1.0, causal=True, soft_cap=0.0):
    """The definition, on materialised logits; norms of PyTorch."""
    if norm == "lp":
        q, k = F.normalize(q, p=p, dim=-1), F.normalize(k, p=p, dim=-1)
    elif norm == "rms":
        q, k = F.rms_norm(q, q.shape[-1:], eps=1e-6), F.rms_norm(k, k.shape[-1:], eps=1e-6)
    elif norm == "layer":
        q, k = F.layer_norm(q, q.shape[-1:], eps=1e-6), F.layer_norm(k, k.shape[-1:], eps=1e-6)
    if gain is not None:
        q = q * (gain.view(-1, 1, q.shape[-1]) if gain.numel() > q.shape[1] else gain.view(-1, 1, 1))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    logits = scale * q @ k.mT
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    if causal:
        t, s = logits.shape[-2:]
        logits = logits.masked_fill(torch.ones(t, s, dtype=bool).triu(s - t + 1), -INF)
    return logits.softmax(-1) @ v


def inputs(b=2, h=4, g=2, t=17, s=17, d=16, dtype=torch.float32, gains=4, seed=3):
    torch.manual_seed(seed)
    q, k, v = (torch.randn(b, n, length, d, dtype=dtype).requires_grad_() for n, length in [(h, t), (g, s), (g, s)])
    gain = torch.linspace(4, 6, gains, dtype=dtype).requires_grad_() if gains else None
    return q, k, v, gain


CASES = [
    dict(p=2.5), dict(p=1.0), dict(p=0.5), dict(p=INF), dict(norm="rms", scale=0.3), dict(norm="layer", scale=0.3),
    dict(norm="none", scale=0.25), dict(soft_cap=2.0), dict(causal=False), dict(p=2, scale=0.7),
]


@pytest.mark.parametrize("gains", [0, 1, 4, 64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fused_form_is_the_definition(case, gains):
    q, k, v, gain = inputs(gains=gains)
    wanted = [x for x in (q, k, v, gain) if x is not None]
    out = normlab.attention(q, k, v, gain=gain, **case)
    grads = torch.autograd.grad(out.square().sum(), wanted)
    exact = [x.detach().double().requires_grad_() for x in wanted]
    truth = reference(*exact[:3], gain=exact[3] if gains else None, **case)
    # Relative to the largest entry: PyTorch's own operators in float32 are up to 2e-6 away on these inputs.
    for ours, theirs in zip((out, *grads), (truth, *torch.autograd.grad(truth.square().sum(), exact))):
        assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_of_the_composite_form(case):
    q, k, v, gain = inputs(b=1, h=2, g=1, t=3, s=4, d=4, dtype=torch.float64, gains=2)
    assert torch.autograd.gradcheck(lambda *x: normlab.attention(*x[:3], gain=x[3], **case), (q, k, v, gain))


def test_gradients_of_a_learned_p():
    q, k, v, gain = inputs(b=1, t=3, s=3, d=4, dtype=torch.float64)
    for entries in (1, 2):
        p = torch.linspace(1.5, 3, entries, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda *x: normlab.attention(*x[:3], p=x[3]), (q, k, v, p))
        narrow = [x.detach().float().requires_grad_() for x in (q, k, v, p)]
        grads = [torch.autograd.grad(normlab.attention(*x[:3], p=x[3]).square().sum(), x) for x in (narrow, (q, k, v, p))]
        for fused, composite in zip(*grads):
            torch.testing.assert_close(fused.double(), composite, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("p", [0.7, 1.0, 2.0, 2.5, INF])
def test_lp_normalize(p):
    torch.manual_seed(1)
    x = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    for dim in (-1, 0, 1):
        torch.testing.assert_close(normlab.lp_normalize(x, p, dim), F.normalize(x, p=p, dim=dim))
        assert torch.autograd.gradcheck(lambda y: normlab.lp_normalize(y, p, dim), (x,))


def test_lp_normalize_stays_finite():
    x = torch.tensor([[0.0, 0.0], [1e30, -1e30], [1e-40, 0.0], [0.0, 2.0]], requires_grad=True)
    y = normlab.lp_normalize(x, 3.0)
    [grad] = torch.autograd.grad(y.sum(), x)
    assert y.isfinite().all() and grad.isfinite().all()
    torch.testing.assert_close(y[1].norm(3), torch.tensor(1.0))


@pytest.mark.parametrize("before_norm", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("gains", [1, 64])
def test_rope_rotates(interleaved, before_norm, gains):
    q, k, v, gain = inputs(gains=gains)
    rope = normlab.make_rope(17, 16, interleaved=interleaved, before_norm=before_norm)
    angle = torch.atan2(rope.sin, rope.cos).double()

    def rotate(x):
        pair = x.unflatten(-1, (8, 2)) if interleaved else x.unflatten(-1, (2, 8)).mT
        turned = torch.view_as_complex(pair.contiguous()) * torch.polar(torch.ones_like(angle), angle)
        back = torch.view_as_real(turned)
        return (back if interleaved else back.mT).flatten(-2)

    def unit(x):
        return F.normalize(x, p=3.0, dim=-1)

    g = gain.double().view(-1, 1, 16) if gains == 64 else gain.double()
    q64, k64 = q.double(), k.double()
    q_hat = unit(rotate(q64)) * g if before_norm else rotate(unit(q64) * g)
    k_hat = unit(rotate(k64)) if before_norm else rotate(unit(k64))
    truth = reference(q_hat, k_hat, v.double(), norm="none")
    out = normlab.attention(q, k, v, gain=gain, rope=rope)
    torch.testing.assert_close(out.double(), truth, atol=3e-6, rtol=1e-5)


def test_the_last_queries_with_a_cache_of_keys():
    q, k, v, gain = inputs()
    rope = normlab.make_rope(32, 16)
    whole = normlab.attention(q, k, v, gain=gain, rope=rope)
    torch.testing.assert_close(normlab.attention(q[:, :, -3:], k, v, gain=gain, rope=rope), whole[:, :, -3:],
                               atol=1e-6, rtol=1e-5)


def test_the_memory_order_of_the_inputs_changes_no_bit():
    torch.manual_seed(1)
    qkv = torch.randn(2, 17, 3 * 4 * 16)
    views = [x.view(2, 17, 4, 16).transpose(1, 2) for x in qkv.chunk(3, -1)]
    assert not views[0].is_contiguous()
    results = []
    for made in (lambda x: x, lambda x: x.contiguous(), lambda x: x.mT.contiguous().mT):
        q, k, v = (made(x).detach().requires_grad_() for x in views)
        out = normlab.attention(q, k, v, p=2.5, gain=torch.tensor([9.0]))
        results.append([out, *torch.autograd.grad(out.sin().sum(), (q, k, v))])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_threads_change_no_bit():
    q, k, v, gain = inputs(t=70, s=70)
    threads, results = torch.get_num_threads(), []
    for n in (1, 2):
        torch.set_num_threads(n)
        out = normlab.attention(q, k, v, gain=gain)
        results.append([out, *torch.autograd.grad(out.sin().sum(), (q, k, v, gain))])
    torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_statistics_are_those_of_the_logits(dtype):
    q, k, v, gain = inputs(dtype=dtype, g=4)
    with torch.no_grad():
        out, stats = normlab.attention(q, k, v, p=2.0, gain=4 * gain, stats=True)
        assert torch.equal(out, normlab.attention(q, k, v, p=2.0, gain=4 * gain))
        q_hat, k_hat = (F.normalize(x.double(), dim=-1) for x in (q, k))
        logits = 4 * gain.double()[:, None, None] * q_hat @ k_hat.mT
        hidden = torch.ones(17, 17, dtype=bool).triu(1)
        weights = logits.masked_fill(hidden, -INF).softmax(-1)[:, :, 1:]
        entropy = -(weights * weights.log()).nan_to_num(0).sum(-1)
    tolerance = dict(atol=5e-2, rtol=2e-2) if dtype == torch.bfloat16 else dict(atol=1e-5, rtol=1e-5)

    def same(ours, theirs):
        torch.testing.assert_close(ours.double(), theirs, **tolerance)

    same(stats.max_logit, logits.masked_fill(hidden, -INF).amax((0, 2, 3)))
    same(stats.entropy, entropy.mean((0, 2)))
    same(stats.frobenius_norm, logits.masked_fill(hidden, 0).square().sum((2, 3)).mean(0).sqrt())
    if dtype != torch.bfloat16:
        assert torch.equal(stats.saturated.double(), (weights.amax(-1) > 0.99).double().mean((0, 2)).float().double())


def test_dropout_keeps_the_mean_and_follows_the_seed():
    q, k, v, gain = inputs(b=1, t=64, s=64)
    torch.manual_seed(5)
    one = normlab.attention(q, k, torch.ones_like(v), gain=gain, dropout_p=0.3, causal=False)
    two = normlab.attention(q, k, torch.ones_like(v), gain=gain, dropout_p=0.3, causal=False)
    torch.manual_seed(5)
    assert torch.equal(one, normlab.attention(q, k, torch.ones_like(v), gain=gain, dropout_p=0.3, causal=False))
    assert not torch.equal(one, two)
    assert abs(one.mean() - 1) < 0.02
    torch.manual_seed(5)  # the composite form drops the same weights
    double = normlab.attention(q.double(), k.double(), torch.ones_like(v).double(), gain=gain.double(), dropout_p=0.3,
                               causal=False)
    torch.testing.assert_close(one.double(), double, atol=1e-5, rtol=1e-5)


OP_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opcheck(dtype):
    q, k, v, gain = inputs(b=1, t=5, s=5, d=4, dtype=dtype)
    rope = normlab.make_rope(5, 4, dtype=dtype)
    seed = torch.tensor([3])
    plain = ("lp", 2.5, 1e-12, 1.0, True, False, False, 0.0)
    attention, lp = torch.ops.normlab.attention.default, torch.ops.normlab.lp_normalize.default
    torch.library.opcheck(attention, (q, k, v, gain, None, None, None, None, *plain, 0.0, False), test_utils=OP_TESTS)
    torch.library.opcheck(attention, (q, k, v, None, None, *rope[:2], seed, *plain, 0.2, True), test_utils=OP_TESTS)
    torch.library.opcheck(attention, (q.mT.contiguous().mT, k, v, None, gain[:1] - 2, None, None, None, *plain, 0.0, False),
                          test_utils=OP_TESTS)
    torch.library.opcheck(lp, (q, 2.5, 1, 1e-12), test_utils=OP_TESTS)
    out, lse, _ = attention(q, k, v, gain, None, None, None, None, *plain, 0.0, False)
    with torch.no_grad():
        fixed = [x.detach() for x in (q, q, k, v, out, lse, gain)]
        torch.library.opcheck(torch.ops.normlab.attention_backward.default,
                              (*fixed, None, None, None, None, *plain, 0.0), test_utils=OP_TESTS)
        torch.library.opcheck(torch.ops.normlab.lp_normalize_backward.default, (fixed[0], fixed[1], 2.5, -1, 1e-12),
                              test_utils=OP_TESTS)


def model(q, k, v, gain):
    out, stats = normlab.attention(normlab.lp_normalize(q, 2.5), k, v, gain=gain, stats=True)
    return out.sin().sum() + 0 * stats.entropy.sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile_without_graph_breaks(backend):
    compiled = torch.compile(model, fullgraph=True, backend=backend, dynamic=backend == "aot_eager")
    for length in (9, 12):
        x = inputs(t=length, s=length)
        expected, ours = model(*x), compiled(*x)
        torch.testing.assert_close(ours, expected)
        for a, b in zip(torch.autograd.grad(ours, x), torch.autograd.grad(expected, x)):
            torch.testing.assert_close(a, b)
        if backend == "inductor":
            break


def test_meta_tensors_have_shapes():
    q, k, v = (torch.empty(2, n, 8, 16, device="meta", dtype=torch.bfloat16) for n in (4, 2, 2))
    out, stats = normlab.attention(q, k, v, stats=True)
    assert out.shape == q.shape and out.dtype == torch.bfloat16 and out.is_meta and stats.entropy.shape == (4,)


def test_autocast_is_fused_on_the_cpu():
    q, k, v, gain = inputs(dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        out = normlab.attention(q, k, v, gain=gain)
    assert out.dtype == torch.float32
    assert torch.equal(out, normlab.attention(q.float(), k.float(), v.float(), gain=gain))
    grads = torch.autograd.grad(out.sum(), (q, k, v, gain))
    assert all(grad.dtype == torch.bfloat16 and grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_of_16_bits(dtype):
    q, k, v, gain = inputs(dtype=dtype)
    out = normlab.attention(q, k, v, gain=gain)
    exact = reference(*(x.detach().double() for x in (q, k, v)), gain=gain.detach().double())
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), exact, atol=3e-2, rtol=3e-2)
    out.sum().backward()
    assert q.grad.dtype == dtype


def test_vmap_calls_it_for_each_sample():
    q, k, v, gain = (x.detach() for x in inputs(b=3))
    sampled = torch.vmap(lambda a, b, c: normlab.attention(a[None], b[None], c[None], gain=gain)[0])(q, k, v)
    torch.testing.assert_close(sampled, normlab.attention(q, k, v, gain=gain))

    def loss(gain, a, b, c):
        return normlab.attention(a[None], b[None], c[None], gain=gain).sin().sum()

    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(loss)(gain, q[0], k[0], v[0])


def test_batched_gradients_are_those_of_each_sample():
    q, k, v, gain = inputs()
    out = normlab.attention(q, k, v, gain=gain)
    directions = torch.randn(3, *out.shape)
    together = torch.autograd.grad(out, (q, gain), directions, is_grads_batched=True, retain_graph=True)
    for i in range(3):
        for ours, alone in zip(together, torch.autograd.grad(out, (q, gain), directions[i], retain_graph=True)):
            torch.testing.assert_close(ours[i], alone)


def test_second_derivatives_are_refused():
    q, k, v, _ = inputs(gains=0)
    [grad] = torch.autograd.grad(normlab.attention(q, k, v).sin().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        grad.sum().backward()


def test_empty_inputs():
    for b, t in ((0, 5), (2, 0)):
        q, k, v, gain = inputs(b=b, t=t, s=t)
        out, stats = normlab.attention(q, k, v, gain=gain, stats=True)
        assert out.shape == q.shape
        out.sum().backward()
        assert q.grad.shape == q.shape and not gain.grad.any()


def tensor(*shape, **kwargs):
    return torch.randn(*shape, **kwargs)


Q = (1, 4, 6, 8)
BAD = {
    "a list": (lambda: normlab.attention([1.0], tensor(*Q), tensor(*Q)), TypeError, "q must be a tensor; got list"),
    "three dimensions": (lambda: normlab.attention(*tensor(3, 4, 6, 8)), ValueError, r"\[batch, heads, length, d_head\]"),
    "whole numbers": (lambda: normlab.attention(*torch.ones(3, *Q, dtype=torch.int64)), ValueError, "float type; got Long"),
    "two types": (lambda: normlab.attention(tensor(*Q), tensor(*Q).double(), tensor(*Q)), ValueError, "one dtype"),
    "two devices": (lambda: normlab.attention(tensor(*Q), tensor(*Q, device="meta"), tensor(*Q)), ValueError,
                    "one device; got cpu and, for k, meta"),
    "other d_head": (lambda: normlab.attention(tensor(*Q), tensor(1, 4, 6, 4), tensor(1, 4, 6, 4)), ValueError, "d_head"),
    "heads": (lambda: normlab.attention(tensor(*Q), tensor(1, 3, 6, 8), tensor(1, 3, 6, 8)), ValueError, "divides"),
    "more queries than keys": (lambda: normlab.attention(tensor(*Q), *tensor(2, 1, 4, 3, 8)), ValueError,
                               "at least as many keys as queries"),
    "p = 0": (lambda: normlab.attention(*tensor(3, *Q), p=0), ValueError, "p must be above 0, inf included; got 0"),
    "p is nan": (lambda: normlab.attention(*tensor(3, *Q), p=math.nan), ValueError, "p must be above 0"),
    "p is text": (lambda: normlab.attention(*tensor(3, *Q), p="3"), TypeError, "p must be a number; got str"),
    "norm": (lambda: normlab.attention(*tensor(3, *Q), norm="l2"), ValueError, "none, lp, rms, layer; got 'l2'"),
    "gain": (lambda: normlab.attention(*tensor(3, *Q), gain=tensor(3)), ValueError, "1, heads or heads x d_head"),
    "rope": (lambda: normlab.attention(*tensor(3, *Q), rope=normlab.make_rope(5, 8)), ValueError, "each position"),
    "odd rope": (lambda: normlab.make_rope(5, 7), ValueError, "even; got 7"),
    "dropout": (lambda: normlab.attention(*tensor(3, *Q), dropout_p=1.0), ValueError, r"in \[0, 1\); got 1"),
    "soft cap": (lambda: normlab.attention(*tensor(3, *Q), soft_cap=-1.0), ValueError, "at least 0"),
    "scale": (lambda: normlab.attention(*tensor(3, *Q), scale=math.inf), ValueError, "finite"),
    "lp p": (lambda: normlab.lp_normalize(tensor(3), -1.0), ValueError, "p must be above 0, inf included; got -1"),
    "lp dim": (lambda: normlab.lp_normalize(tensor(3), 2.0, dim=1), ValueError, "dim must be a dimension of x; got 1"),
    "lp type": (lambda: normlab.lp_normalize(torch.ones(3, dtype=torch.int32), 2.0), ValueError, "float type; got Int"),
    "lp scalar": (lambda: normlab.lp_normalize(torch.tensor(1.0), 2.0), ValueError, "dim must be a dimension"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_an_exception_that_says_what_was_expected(what):
    call, kind, message = BAD[what]
    with pytest.raises(kind, match=message):
        call()
