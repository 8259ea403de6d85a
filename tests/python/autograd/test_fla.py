"""flash-linear-attention's functions: their options against recurrences in float64, what is refused,
and FLA's registry (stand-ins for its modules: what Kiln asks of them and no more)."""

import functools
import sys
import types

import pytest
import torch
from common import doubles, gradients, normal, rule
from test_linear import assert_rms, decays

import kiln.torch as kt
from kiln.compat import _fla_layer, _fla_registry, fla

B, T, H, HV, K, V = 1, 37, 1, 2, 32, 16


def normed(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def made_gate(g, A_log, dt_bias, lower_bound):
    rate = A_log.exp().reshape(-1, *[1] * (g.dim() - 3))
    g = g + dt_bias.view(g.shape[2:])
    if lower_bound is not None:
        return lower_bound * (rate * g).sigmoid()
    return -rate * torch.nn.functional.softplus(g)


@pytest.mark.parametrize("name", ["kda", "kda_with_a_bound", "gated_delta_rule"])
def test_what_fla_does_in_its_kernels(name):
    """Grouped values, l2 norm, the gate from its parameters, sigmoid of beta, states [V, K]."""
    of_channels, bound = name != "gated_delta_rule", -5.0 if "bound" in name else None
    gates = (K,) if of_channels else ()
    tensors = [normal(B, T, H, K), normal(B, T, H, K), normal(B, T, HV, V)]
    tensors += [normal(B, T, HV, *gates), normal(B, T, HV)]
    tensors += [normal(HV, dtype=torch.float32), normal(HV * K if of_channels else HV)]
    tensors += [normal(B, HV, V, K, dtype=torch.float32)]
    q, k, v, g, beta, A_log, dt_bias, state = tensors
    options = {"safe_gate": True, "lower_bound": bound} if bound else {}
    function = fla.chunk_kda if of_channels else fla.chunk_gated_delta_rule
    got = function(
        q,
        k,
        v,
        g,
        beta,
        initial_state=state,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
        use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True,
        allow_neg_eigval=True,
        state_v_first=True,
        A_log=A_log,
        dt_bias=dt_bias,
        **options,
    )
    direction = [torch.randn_like(t) for t in got]
    mine = gradients(got, tensors, direction)
    exact = doubles(*tensors)
    q, k, v, g, beta, A_log, dt_bias, state = exact
    q, k = (normed(t).repeat_interleave(HV // H, 2) for t in (q, k))
    o, last = rule(
        "kda",
        q,
        k,
        v,
        g=made_gate(g, A_log, dt_bias, bound),
        beta=2 * beta.sigmoid(),
        state=state.mT,
    )
    wanted = o, last.mT
    by = gradients(wanted, exact, [d.double() for d in direction])
    for a, b in zip((*got, *mine), (*wanted, *by)):
        # A parameter's few numbers are sums of rounded gradients of either sign.
        assert_rms(a, b, 0.01 if b.numel() > HV else 0.02)
    assert all(a.dtype == t.dtype for a, t in zip(mine, tensors))


def rwkv7_inputs(dtype=torch.bfloat16):
    r, k, v = (normal(B, T, H, n, dtype=dtype, grad=False) for n in (K, K, V))
    kk = torch.nn.functional.normalize(torch.randn(B, T, H, K), dim=-1)
    return r, decays(B, T, H, K).detach(), k, v, (-kk).to(dtype), (kk / 2).to(dtype)


def test_plain_calls_are_kiln_torch():
    r, w, k, v, a, b = rwkv7_inputs()
    beta, g = torch.rand(B, T, H), w[..., 0].contiguous()
    pairs = [
        (fla.chunk_rwkv7(r, w, k, v, a, b), kt.rwkv7(r, w, k, v, a, b)),
        (fla.chunk_rwkv7(r, w, k, v, a, b, None), kt.dplr(r, k, v, a, b, w)),
        (fla.chunk_dplr_delta_rule(r, k, v, a, b, gk=w), kt.dplr(r, k, v, a, b, w)),
        (fla.chunk_iplr_delta_rule(r, k, v, a, b), kt.iplr(r, k, v, a, b)),
        (fla.chunk_delta_rule(r, -a, v, beta), kt.delta_rule(r, -a, v, beta)),
        (fla.chunk_gla(r, k, v, w), kt.gla(r, k, v, w)),
        (fla.chunk_simple_gla(r, k, v, g), kt.simple_gla(r, k, v, g)),
        (
            fla.chunk_simple_gla(r, k, v, g, g_gamma=torch.tensor([-0.1])),
            kt.simple_gla(r, k, v, g - 0.1),
        ),
        (fla.chunk_simple_gla(r, k, v), kt.simple_gla(r, k, v, torch.zeros(B, T, H))),
    ]
    for (o, state), wanted in pairs:
        assert state is None and torch.equal(o, wanted)


def test_autocast_and_other_types():
    r, w, k, v, a, b = rwkv7_inputs()
    wanted = fla.chunk_rwkv7(r, w, k, v, a, b)[0]
    # What promotion leaves in f32 around activations of 16 bits.
    assert torch.equal(fla.chunk_rwkv7(r, w, k, v, a.float(), b.float())[0], wanted)
    with torch.autocast(r.device.type, torch.bfloat16):
        got = fla.chunk_rwkv7(*(t.float() for t in (r, w, k, v, a, b)))[0]
    assert torch.equal(got, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rwkv7_token_by_token(dtype):
    r, w, k, v, a, b = rwkv7_inputs(dtype)
    rate, state = torch.rand(B, T, H, K).to(dtype), torch.randn(B, H, K, V)
    got = fla.fused_mul_recurrent_rwkv7(
        r, w, k, v, -a, rate, initial_state=state, output_final_state=True
    )
    exact = dict(zip("qgkvab", doubles(r, w, k, v, a, (-a * rate))))
    for one, wanted in zip(got, rule("rwkv7", **exact, state=state.double())):
        assert_rms(one, wanted, 0.007 if dtype == torch.bfloat16 else 1e-5)
    assert fla.fused_mul_recurrent_rwkv7(r, w, k, v, -a, rate)[1] is None
    with pytest.raises(NotImplementedError, match="argument 'reverse' is given"):
        fla.fused_mul_recurrent_rwkv7(r, w, k, v, -a, rate, reverse=True)


def test_it_compiles_without_a_break():
    q, k, v = (normal(B, T, H, n) for n in (K, K, V))
    g, beta = decays(B, T, H, K), torch.rand(B, T, H)
    function = torch.compile(
        lambda q: fla.chunk_kda(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)[0],
        fullgraph=True,
        backend="eager",
    )
    got = function(q)
    assert torch.equal(got, fla.chunk_kda(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)[0])


REFUSED = [
    ({"cp_context": object()}, NotImplementedError, "argument 'cp_context' is given"),
    ({"use_graph": True}, NotImplementedError, "argument 'use_graph' is given"),
    (
        {"return_intermediate_states": True},
        NotImplementedError,
        "argument 'return_intermediate_states' is given",
    ),
    ({"chunk_size": 128}, NotImplementedError, "argument 'chunk_size' is 128"),
    ({"q": torch.ones(1, 4, 1, 32)}, NotImplementedError, "argument 'q' is of the type .*float32"),
    (
        {"q": torch.ones(1, 4, 1, 257).bfloat16()},
        NotImplementedError,
        "argument 'q' has 257 columns",
    ),
    ({"lower_bound": 0.5}, ValueError, "argument 'lower_bound' is 0.5"),
    ({"allow_neg_eigval": True}, ValueError, "argument 'allow_neg_eigval' needs"),
    ({"use_gate_in_kernel": True}, ValueError, "argument 'use_gate_in_kernel' needs A_log"),
    (
        {"use_gate_in_kernel": True, "A_log": torch.ones(1), "safe_gate": True},
        ValueError,
        "need lower_bound",
    ),
    ({"dt_bais": None}, TypeError, "there is no argument 'dt_bais'"),
]


@pytest.mark.parametrize("given, error, message", REFUSED, ids=lambda x: None)
def test_what_is_refused_is_named(given, error, message):
    q = torch.ones(1, 4, 1, 32).bfloat16()
    arguments = {"q": q, "k": q, "v": q, "g": -torch.ones(1, 4, 1, 32), "beta": torch.ones(1, 4, 1)}
    with pytest.raises(error, match=f"chunk_kda: .*{message}"):
        fla.chunk_kda(**{**arguments, **given})


class BackendRegistry:
    """As fla.backends has it, as far as Kiln sees it."""

    def __init__(self):
        self.backends = {}

    def register(self, backend):
        self.backends[backend.backend_type] = backend

    def dispatch(self, default):
        @functools.wraps(default)
        def wrapper(*args, **kwargs):
            name = default.__name__
            for backend in self.backends.values():
                verify = getattr(backend, f"{name}_verifier")
                if backend.is_enabled() and verify(*args, **kwargs)[0]:
                    return getattr(backend, name)(*args, **kwargs)
            return default(*args, **kwargs)

        return torch.compiler.disable(wrapper)


class Fla:
    """Stand-ins for FLA's modules: some functions have a registry, and all say that they were
    called."""

    def __init__(self, monkeypatch):
        self.theirs = []
        self.modules = {name: types.ModuleType(name) for name in ("fla", "fla.backends")}
        backends = self.modules["fla.backends"]
        backends.BaseBackend, backends.BackendRegistry = (
            type("BaseBackend", (), {}),
            BackendRegistry,
        )
        backends.dispatch = lambda function: BackendRegistry().dispatch(function)
        for at, (module, function) in enumerate(
            {**fla._registry.table, **fla._layer.table}.items()
        ):
            theirs = self.own(function.__name__)
            if at < 3:
                theirs = torch.compiler.disable(BackendRegistry().dispatch(theirs))
            self.modules[module] = types.ModuleType(module)
            setattr(self.modules[module], function.__name__, theirs)
        layers = self.modules["fla.layers"] = types.ModuleType("fla.layers")
        layers.chunk_gla = self.modules["fla.ops.gla.chunk"].chunk_gla  # as an import leaves it
        for name, module in self.modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    def own(self, name):
        def function(*args, **kwargs):
            self.theirs.append(name)

        function.__name__ = name
        return function


class TestRegistry:
    @pytest.fixture(autouse=True)
    def theirs(self, monkeypatch):
        self.stand_in = Fla(monkeypatch)
        self.registry = _fla_registry.Registry(fla._registry.table)
        monkeypatch.setattr(fla, "_registry", self.registry)
        self.layer = _fla_registry.Registry(fla._layer.table)
        monkeypatch.setattr(fla, "_layer", self.layer)

    def call(self, name):
        both = {**self.registry.table, **self.layer.table}
        module = next(m for m, f in both.items() if f.__name__ == name)
        return getattr(self.stand_in.modules[module], name)

    def test_every_function_runs_kiln_while_it_is_enabled(self):
        r, w, k, v, a, b = rwkv7_inputs()
        beta, g = torch.rand(B, T, H), w[..., 0].contiguous()
        arguments = {
            "chunk_dplr_delta_rule": (r, k, v, a, b, w),
            "chunk_gated_delta_rule": (r, -a, v, g, beta),
            "chunk_kda": (r, -a, v, w, beta),
            "chunk_iplr_delta_rule": (r, k, v, a, b),
            "chunk_delta_rule": (r, -a, v, beta),
            "chunk_gla": (r, k, v, w),
            "chunk_simple_gla": (r, k, v, g),
            "fused_mul_recurrent_rwkv7": (r, w, k, v, -a, beta[..., None].expand(r.shape)),
        }
        assert len(arguments) == len(self.registry.table)
        fla.enable()
        for name, given in arguments.items():
            assert torch.equal(self.call(name)(*given)[0], getattr(fla, name)(*given)[0]), name
        assert fla.calls() == dict.fromkeys(arguments, 1) and not self.stand_in.theirs
        fla.disable()
        for name, given in arguments.items():
            self.call(name)(*given)
        assert fla.calls() == dict.fromkeys(arguments, 1)
        assert self.stand_in.theirs == list(arguments)

    def test_a_call_that_kiln_does_not_take_goes_to_fla(self):
        fla.enable()
        r, w, k, v, *_ = rwkv7_inputs(torch.float32)
        self.call("chunk_kda")(r, k, v, w, torch.rand(B, T, H))
        assert self.stand_in.theirs == ["chunk_kda"] and not fla.calls()
        (why,) = fla.refusals()
        assert "chunk_kda: argument 'q' is of the type torch.float32" in why

    def test_replaced_functions_are_put_back(self):
        layer, original = self.stand_in.modules["fla.layers"], self.call("chunk_gla")
        for _ in range(2):
            fla.enable()
            fla.enable()
            assert layer.chunk_gla is self.call("chunk_gla") is not original
            fla.disable()
            fla.disable()
            assert layer.chunk_gla is self.call("chunk_gla") is original

    def test_who_computes_the_layer(self):
        x = normal(2, 5, 8, grad=False)
        for layers, theirs in (("torch", 0), ("fla", 1), ("torch", 1)):
            fla.enable(layers=layers)
            got = self.call("token_shift")(x)
            assert self.stand_in.theirs == ["token_shift"] * theirs
            assert layers == "fla" or torch.equal(got, _fla_layer.token_shift(x))
        self.call("token_shift")(x, cu_seqlens=torch.tensor([0, 5]))
        fla.disable()
        self.call("token_shift")(x)
        assert self.stand_in.theirs == ["token_shift"] * 3 and not fla.calls()

    def test_an_fla_without_the_layers_functions_has_none_of_kiln(self):
        del self.stand_in.modules["fla.modules.token_shift"].token_shift
        with pytest.raises(ImportError, match="fla.modules.token_shift.token_shift"):
            fla.enable()
        assert not self.registry.enabled
        fla.enable(layers="fla")

    def test_an_fla_that_has_moved_its_functions_is_refused(self):
        del self.stand_in.modules["fla.ops.kda.chunk"].chunk_kda
        with pytest.raises(ImportError, match="fla . has no fla.ops.kda.chunk.chunk_kda"):
            fla.enable()

    def test_an_fla_without_a_registry_is_refused(self, monkeypatch):
        self.stand_in.modules["fla.backends"]._DISPATCH_DISABLED = True
        with pytest.raises(RuntimeError, match="FLA_DISABLE_BACKEND_DISPATCH=1"):
            fla.enable()
        monkeypatch.setattr(self.stand_in.modules["fla"], "__version__", "0.5.2", raising=False)
        monkeypatch.delitem(sys.modules, "fla.backends")
        self.stand_in.modules["fla"].__path__ = []
        with pytest.raises(ImportError, match="fla 0.5.2 has no fla.backends"):
            fla.enable()
        monkeypatch.delitem(sys.modules, "fla")
        monkeypatch.setattr(sys, "path", [])
        with pytest.raises(ImportError, match="install flash-linear-attention"):
            fla.enable()


LAYER = {
    "token_shift": (
        lambda x, c: _fla_layer.token_shift(x, cache=c, output_cache=True),
        lambda x, c: (torch.cat((c[:, None], x[:, :-1]), 1) - x, x[:, -1]),
        [(2, 5, 8), (2, 8)],
    ),
    "token_shift_without_cache": (
        _fla_layer.token_shift,
        lambda x: torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1) - x,
        [(2, 5, 8)],
    ),
    "fused_addcmul_rwkv7": (
        _fla_layer.fused_addcmul_rwkv7,
        lambda x, d, *by: tuple(x + d * b for b in by),
        [(2, 5, 8)] * 2 + [(1, 1, 8)] * 6,
    ),
    "fused_k_rwkv7": (
        _fla_layer.fused_k_rwkv7,
        lambda k, a, ka: k * (1 + (a - 1) * ka),
        [(2, 5, 8), (2, 5, 8), (8,)],
    ),
    "l2norm": (_fla_layer.l2norm, lambda x: x / x.norm(dim=-1, keepdim=True), [(2, 5, 3, 16)]),
    "gate_output_correction": (
        _fla_layer.gate_output_correction,
        lambda o, r, k, r_k, v, g: (o + ((r * k * r_k).sum(-1, keepdim=True) * v).view(o.shape))
        * g,
        [(2, 5, 24), (2, 5, 3, 8), (2, 5, 3, 8), (3, 8), (2, 5, 3, 8), (2, 5, 24)],
    ),
    "group_norm": (
        lambda x, w, b: _fla_layer.group_norm(x, w, b, eps=1e-3, num_groups=3),
        lambda x, w, b: torch.nn.functional.group_norm(x.reshape(-1, 24), 3, w, b, 1e-3).view(
            x.shape
        ),
        [(2, 5, 24), (24,), (24,)],
    ),
}


@pytest.mark.parametrize("name", LAYER)
def test_what_the_layer_has_besides(name):
    function, reference, shapes = LAYER[name]
    tensors = [normal(*shape) for shape in shapes]
    exact = doubles(*tensors)
    got, wanted = function(*tensors), reference(*exact)
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    direction = [torch.randn_like(t) for t in got]
    mine = gradients(got, tensors, direction)
    true = gradients(wanted, exact, [d.double() for d in direction])
    for a, b in zip((*got, *mine), (*wanted, *true)):
        assert a.dtype == torch.bfloat16
        assert_rms(a, b, 0.01)


def test_a_missing_gate_stays_missing():
    x = normal(1, 3, 8, grad=False)
    assert _fla_layer.fused_addcmul_rwkv7(x, x, x, x, x, x, x)[5] is None


def test_who_computes_the_layer_is_checked():
    with pytest.raises(ValueError, match="enable: argument 'layers' is 'triton'"):
        fla.enable(layers="triton")
    for refused in (
        lambda: _fla_layer.token_shift.check(1, cu_seqlens=2),
        lambda: _fla_layer.group_norm.check(1, 2, 3, residual=4),
        lambda: _fla_layer.group_norm.check(1, 2, 3, is_rms_norm=True),
    ):
        with pytest.raises(NotImplementedError, match="FLA computes it"):
            refused()
