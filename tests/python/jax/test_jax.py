"""Operations on arrays of JAX, against the same in JAX's own."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import kiln
import kiln.jax as kj


def normal(seed, *shape, dtype=jnp.bfloat16):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(dtype)


def attention(q, k, v, causal=False, scale=None):
    q, k, v = (t.astype(jnp.float32).transpose(0, 2, 1, 3) for t in (q, k, v))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    return (jax.nn.softmax(s, -1) @ v).transpose(0, 2, 1, 3)


def assert_close(got, wanted, share=2.0**-6):
    wanted = np.asarray(wanted, np.float32)
    error = np.abs(np.asarray(got, np.float32) - wanted).max()
    assert error <= share * np.abs(wanted).max() + 1e-5, error


def test_operations_run():
    x = normal(0, 4, 32, dtype=jnp.float32)
    assert_close(kj.softmax(x), jax.nn.softmax(x), 1e-6)
    assert_close(jax.jit(kj.softmax)(x), jax.nn.softmax(x), 1e-6)
    a, b = normal(1, 8, 16), normal(2, 8, 16)
    got = jax.jit(lambda a, b: kj.matmul(a, b, transpose_b=True, out_dtype="f32"))(a, b)
    assert got.dtype == jnp.float32
    assert_close(got, a.astype(jnp.float32) @ b.astype(jnp.float32).T, 1e-5)


def test_attention_and_its_gradients():
    options = {"causal": True, "scale": 0.3, "align": "top_left"}
    inputs = [normal(n, 1, 16, 2, 32) for n in range(3)]
    wanted = {n: v for n, v in options.items() if n != "align"}

    def loss(function, options):
        def total(*tensors):
            o = function(*tensors, **options)
            return (o.astype(jnp.float32) * weight).sum()

        return jax.value_and_grad(total, (0, 1, 2))

    weight = normal(9, 1, 16, 2, 32, dtype=jnp.float32)
    got, by = jax.jit(loss(kj.attention, options))(*inputs)
    exact, exact_by = loss(attention, wanted)(*inputs)
    assert abs(got - exact) <= 0.02 * abs(exact) + 0.5
    for gradient, other, tensor in zip(by, exact_by, inputs):
        assert gradient.dtype == tensor.dtype
        assert_close(gradient, other, 2.0**-5)


def test_optional_outputs_and_inputs():
    q = normal(0, 1, 16, 2, 32)
    o, lse = kj.attention(q, q, q, lse=True, sink=jnp.zeros(2))
    assert o.shape == q.shape and lse.shape == (1, 2, 16)
    sink = jax.grad(lambda sink: kj.attention(q, q, q, sink=sink).astype(jnp.float32).sum())(
        jnp.zeros(2)
    )
    assert sink.shape == (2,) and (sink != 0).all()
    by_lse = jax.grad(lambda q: kj.attention(q, q, q, lse=True)[1].sum())(q)
    assert (by_lse != 0).any()


def test_packed_sequences():
    """Offsets are whole numbers, which have no gradient."""
    q = normal(0, 24, 1, 32)
    offsets = jnp.array([0, 8, 24], jnp.int32)

    def total(q):
        o = kj.attention(q, q, q, cu_seqlens_q=offsets, cu_seqlens_k=offsets)
        return o.astype(jnp.float32).sum(), o

    (_, o), gradient = jax.value_and_grad(total, has_aux=True)(q)
    assert_close(o[:8], attention(*[q[None, :8]] * 3)[0])
    assert gradient.shape == q.shape


def test_a_rule_of_linear_attention():
    r, k, v, a, b = (0.1 * normal(n, 1, 32, 1, 16) for n in range(5))
    w = -jnp.abs(normal(5, 1, 32, 1, 16, dtype=jnp.float32))

    def total(r, w):
        o, state = kj.rwkv7(r, k, v, a, b, w, final_state=True)
        return o.astype(jnp.float32).sum() + state.sum()

    dr, dw = jax.grad(total, (0, 1))(r, w)
    assert dr.dtype == jnp.bfloat16 and dw.dtype == jnp.float32 and (dw != 0).any()


def test_vmap_runs_each():
    x = normal(0, 3, 4, 32, dtype=jnp.float32)
    assert_close(jax.vmap(kj.softmax)(x), jax.nn.softmax(x), 1e-6)


def test_what_is_wrong_is_named():
    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="matmul: argument 'b'"):
        jax.jit(kj.matmul)(x, x)
    with pytest.raises(TypeError, match="did you mean 'causal'"):
        kj.attention(x, x, x, casual=True)
    with pytest.raises(TypeError, match="argument 'b' is missing"):
        kj.matmul(x)
    with pytest.raises(TypeError, match="'out' is an output; give True"):
        kj.softmax(x, out=x)
    with pytest.raises(TypeError, match="2 arrays by position"):
        kj.softmax(x, x)
    with pytest.raises(NotImplementedError, match="attention_decode writes into its inputs"):
        kj.attention_decode
    with pytest.raises(AttributeError, match="no operation 'sotfmax'"):
        kj.sotfmax


def test_second_derivatives_are_refused():
    q = normal(0, 1, 8, 1, 16)

    def total(q):
        return kj.attention(q, q, q).astype(jnp.float32).sum()

    with pytest.raises(ValueError, match="differentiat"):
        jax.grad(lambda q: jax.grad(total)(q).astype(jnp.float32).sum())(q)


def test_numpy_of_ml_dtypes_next_to_jax():
    """Both make DLPack's capsules through ctypes."""
    x = np.ones((2, 8), ml_dtypes.bfloat16)
    assert (kiln.softmax(x).astype(np.float32) == 0.125).all()
