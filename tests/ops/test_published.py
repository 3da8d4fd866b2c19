"""Parameters and cache rows of the library's models, against what their authors publish."""

from __future__ import annotations

import pytest

from chipsim.arch_configs import names
from chipsim.ops import parameters
from chipsim.ops.cache import sequence_bytes
from chipsim.ops.model import ModelSpec
from chipsim.ops.parameters import Shares
from chipsim.ops.precision import Precision
from tests.ops.test_parts import MLA, MOE, SSM, small

FP16 = Precision()

EXACT = {
    # Elements of the published weight files, draft layers left out; each is worked out
    # below from the shape that the authors publish, and those of the importer's tests were
    # counted by another program too (`tests.importers.counted`). A router's bias for
    # balance is counted.
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "mistral-7b": 7_241_732_096,
    "phi-2": 2_779_683_840,
    "phi-4": 14_659_507_200,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "gpt2-xl": 1_557_611_200,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
    "gemma-2-9b": 9_241_705_984,
}

CARDS = {
    # Total and active, billions, rounded as the authors round them.
    "mixtral-8x7b": (46.7, 12.9),  # Mistral's announcement, December 2023
    "qwen3-30b-a3b": (30.5, 3.3),  # model card
    "qwen3-235b-a22b": (235, 22),  # model card
    "deepseek-v2": (236, 21),  # arXiv 2405.04434, abstract
    "deepseek-v3": (671, 37),  # arXiv 2412.19437, abstract
    "kimi-k2": (1040, 32.6),  # arXiv 2507.20534, Table 2
    "glm-5": (744, 40),  # model card
    "gpt-oss-120b": (116.83, 5.13),  # arXiv 2508.10925, Table 1
    "gpt-oss-20b": (20.91, 3.61),  # the same
    "nemotron-3-nano": (31.6, 3.6),  # NVIDIA's report, with embeddings
}


def decoder(
    hidden: int, layers: int, qkvo: int, mlp: int, rows: int, tables: int = 2, norms: int = 2
) -> int:
    """Tables, layers of attention and MLP with norms of one weight each, the last norm."""
    layer = qkvo + mlp + norms * hidden
    return tables * rows * hidden + layers * layer + hidden


def qkvo(hidden: int, heads: int, kv_heads: int, width: int) -> int:
    return 2 * hidden * width * (heads + kv_heads)


def gated(hidden: int, width: int) -> int:
    return 3 * hidden * width


def moe(hidden: int, width: int, experts: int) -> int:
    return experts * (gated(hidden, width) + hidden)


def deepseek(hidden: int, width: int, experts: int, shared: int, *, balance: bool) -> int:
    """The experts of one layer, its router and shared experts."""
    count = moe(hidden, width, experts) + shared * gated(hidden, width)
    return count + (experts if balance else 0)


def latent(hidden: int) -> int:
    """128 heads; queries through 1536, keys and values through 512 + 64; norms."""
    count = hidden * 1536 + 1536 + 1536 * 128 * 192
    return count + hidden * 576 + 512 + 512 * 128 * 256 + 128 * 128 * hidden


def oss(layers: int, experts: int) -> int:
    """64 heads on 8 of 64 with biases and sinks; experts of 2880 with biases."""
    attention = 2880 * 64 * (64 + 16) + 64 * (64 + 16) + 64 * 64 * 2880 + 2880 + 64
    expert = 2880 * 5760 + 5760 + 2880 * 2880 + 2880
    return decoder(2880, layers, attention, experts * (expert + 2880 + 1), 201088)


ARITHMETIC = {
    "mixtral-8x7b": decoder(4096, 32, qkvo(4096, 32, 8, 128), moe(4096, 14336, 8), 32000),
    "qwen3-4b": decoder(
        2560, 36, qkvo(2560, 32, 8, 128) + 256, gated(2560, 9728), 151936, tables=1
    ),
    "qwen3-8b": decoder(4096, 36, qkvo(4096, 32, 8, 128) + 256, gated(4096, 12288), 151936),
    "qwen3-14b": decoder(5120, 40, qkvo(5120, 40, 8, 128) + 256, gated(5120, 17408), 151936),
    "qwen3-32b": decoder(5120, 64, qkvo(5120, 64, 8, 128) + 256, gated(5120, 25600), 151936),
    "qwen3-30b-a3b": decoder(
        2048, 48, qkvo(2048, 32, 4, 128) + 256, moe(2048, 768, 128), 151936
    ),
    "qwen3-235b-a22b": decoder(
        4096, 94, qkvo(4096, 64, 4, 128) + 256, moe(4096, 1536, 128), 151936
    ),
    "deepseek-v2": decoder(5120, 60, latent(5120), 0, 102400)
    + gated(5120, 12288)
    + 59 * deepseek(5120, 1536, 160, 2, balance=False),
    "deepseek-v3": decoder(7168, 61, latent(7168), 0, 129280)
    + 3 * gated(7168, 18432)
    + 58 * deepseek(7168, 2048, 256, 1, balance=True),
    "gpt-oss-20b": oss(24, 32),
    "gpt-oss-120b": oss(36, 128),
    "mistral-7b": decoder(4096, 32, qkvo(4096, 32, 8, 128), gated(4096, 14336), 32000),
    # LayerNorms of two weights, biases everywhere, one norm a layer, a bias of the head.
    "phi-2": decoder(
        2560, 32, 4 * 2560 * 2561, 2 * 2560 * 10240 + 12800, 51200, norms=2
    ) + 2560 + 51200,
    "phi-4": decoder(5120, 40, qkvo(5120, 40, 10, 128), gated(5120, 17920), 100352),
    "falcon-7b": decoder(4544, 32, qkvo(4544, 71, 1, 64), 8 * 4544**2, 65024, tables=1) + 4544,
    "falcon-40b": decoder(
        8192, 60, qkvo(8192, 128, 8, 64), 8 * 8192**2, 65024, tables=1, norms=4
    ) + 8192,
    "gpt2-xl": decoder(
        1600, 48, 4 * 1600 * 1601, 2 * 1600 * 6400 + 8000, 50257, tables=1, norms=4
    ) + 1600 + 1024 * 1600,
    "qwen2.5-7b": decoder(
        3584, 28, qkvo(3584, 28, 4, 128) + 128 * (28 + 8), gated(3584, 18944), 152064
    ),
    "qwen2.5-72b": decoder(
        8192, 80, qkvo(8192, 64, 8, 128) + 128 * (64 + 16), gated(8192, 29568), 152064
    ),
    "gemma-2-9b": decoder(
        3584, 42, qkvo(3584, 16, 8, 256), gated(3584, 14336), 256000, tables=1, norms=4
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_parameters_to_the_last(name: str) -> None:
    assert ModelSpec.load(name).parameters == EXACT[name] == ARITHMETIC[name]


def test_a_hybrid_has_the_size_of_its_name() -> None:
    hybrid = ModelSpec.load("qwen3.5-35b-a3b")
    assert hybrid.parameters / 1e9 == pytest.approx(35, rel=0.02)
    assert 3e9 < hybrid.active_parameters < 3.5e9


@pytest.mark.parametrize("name", CARDS)
def test_total_and_active_are_those_of_the_card(name: str) -> None:
    spec, (total, active) = ModelSpec.load(name), CARDS[name]
    assert spec.parameters / 1e9 == pytest.approx(total, rel=0.02)
    assert spec.active_parameters / 1e9 == pytest.approx(active, rel=0.02)


def test_gemma_is_its_embedding_and_the_rest() -> None:
    # Gemma 3 report, Table 1: 25,600 M beside the embedding of 262 k rows
    spec = ModelSpec.load("gemma-3-27b")
    rest = spec.parameters - spec.vocabulary * spec.hidden
    assert rest / 1e6 == pytest.approx(25_600, rel=1e-3)


def test_an_indexer_is_what_sparse_attention_adds() -> None:
    dense, sparse = (ModelSpec.load(name) for name in ("deepseek-v3", "deepseek-v3.2"))
    indexer = 1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128
    assert sparse.parameters - dense.parameters == 61 * indexer


@pytest.mark.parametrize("name", names("models"))
def test_no_model_has_more_active_than_parameters(name: str) -> None:
    spec = ModelSpec.load(name)
    assert 0 < spec.active_parameters <= spec.parameters
    assert spec.is_moe or spec.active_parameters == spec.parameters


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen3-32b", 262_144),  # head_dim 128 although 5120 / 64 = 80
        ("qwen3-30b-a3b", 98_304),
        ("mixtral-8x7b", 131_072),
        ("deepseek-v3", 61 * 576 * 2),  # latent and rotary row, once for all heads
        ("deepseek-v3.2", 61 * (576 + 128) * 2),  # and the indexer's key
        ("gpt-oss-120b", 36 * 2 * 8 * 64 * 2),
        ("gemma-3-27b", 62 * 2 * 16 * 128 * 2),
        ("nemotron-3-nano", 6 * 2 * 2 * 128 * 2),  # six of 52 layers attend
        ("falcon-7b", 32 * 2 * 64 * 2),  # one key and value head
    ],
)
def test_cached_bytes_of_a_token(name: str, size: int) -> None:
    assert ModelSpec.load(name).kv_bytes_per_token(FP16) == size


def test_a_latent_row_in_two_formats() -> None:
    spec = ModelSpec.load("deepseek-v3")
    fp8 = Precision(kv="fp8")
    mixed = Precision(kv="nvfp4", kv_rotary="fp8")
    assert spec.kv_bytes_per_token(fp8) == 61 * 576
    assert spec.kv_bytes_per_token(mixed) == 61 * 352


def test_the_indexers_share_does_not_shrink_with_the_latent() -> None:
    spec = ModelSpec.load("deepseek-v3.2")
    mixed = Precision(kv="nvfp4", kv_rotary="fp8", kv_indexer="fp8")
    assert spec.kv_bytes_per_token(mixed) == 61 * (352 + 128)


def test_windows_bound_what_a_sequence_keeps() -> None:
    spec = ModelSpec.load("gpt-oss-120b")
    row = 2 * 8 * 64 * 2
    for tokens in (1, 128, 129, 100_000):
        kept = 18 * row * tokens + 18 * row * min(tokens, 128)
        assert sequence_bytes(spec, FP16, tokens) == kept


def test_states_do_not_grow() -> None:
    spec = ModelSpec.load("nemotron-3-nano")
    state = 23 * (64 * 128 * 64 * 4 + (2 * 8 * 128 + 64 * 64) * 3 * 2)
    for tokens in (1, 100_000):
        assert sequence_bytes(spec, FP16, tokens) == state + tokens * 6144


def test_a_shared_cache_is_kept_once() -> None:
    own = small(layers=2)
    shared = small(
        layers=2,
        layer_kinds=[
            {"name": "builds"}, {"name": "reads", "attention": {"shares_cache": True}}
        ],
        layer_order=[{"kinds": ["builds", "reads"]}],
    )  # fmt: skip
    assert 2 * shared.kv_elements_per_token == own.kv_elements_per_token
    # Without projections of keys and values: 2 x 64 x 64 less.
    assert own.parameters - shared.parameters == 2 * 64 * 64


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_latent_rows_stand_whole_on_every_chip(tp: int) -> None:
    spec = ModelSpec.load("deepseek-v3")
    assert sequence_bytes(spec, FP16, 10, tp) == 10 * 70_272


def test_a_layer_worked_out_by_hand() -> None:
    """Every matrix of a latent attention with experts, written down once more."""
    shape = {"shared_intermediate": 48, "router_bias": True, "shared_gate": True}
    spec = small(layers=1, attention=MLA, mlp=MOE | shape)
    matrices = [
        (64, 24), (24, 4 * 12), (64, 16 + 4), (16, 4 * (8 + 6)), (4 * 6, 64),  # attention
        (64, 8), (64, 2 * 48), (48, 64), (64, 1),  # router, shared experts, their gate
        *[(64, 2 * 40), (40, 64)] * 8,  # experts
    ]  # fmt: skip
    vectors = 24 + 16 + 2 * 64 + 8  # norms of the latents and the layer, router bias
    layer = sum(k * n for k, n in matrices) + vectors
    assert spec.layer_parameters == layer
    assert spec.parameters == layer + 2 * 32000 * 64 + 64
    idle = 6 * (64 * 80 + 40 * 64)
    assert spec.active_parameters == spec.parameters - idle


@pytest.mark.parametrize(
    ("rule", "fields", "count"),
    [
        # Mamba-2: in (z, x, B, C, dt), convolution of x, B, C and its bias, A, D, dt, norm, out
        (
            "ssm",
            {"conv": 4, "conv_bias": True},
            64 * (32 + 32 + 64 + 8) + 96 * 5 + 3 * 8 + 32 + 32 * 64,
        ),
        # Gated delta net: qkvz and ba, convolution of qkv, A, dt, norm of a head, out
        ("delta", {"conv": 4}, 64 * (64 + 32 + 32 + 16) + 96 * 4 + 16 + 4 + 32 * 64),
        # Lightning attention: qkv and gate, norm, out
        ("decay", {}, 64 * (96 + 32) + 32 + 32 * 64),
        # Kimi delta attention: qkv, beta, two low ranks of 4, convolution, A, dt, norm, out
        (
            "kda",
            {"conv": 4},
            64 * (96 + 8) + 64 * 8 + 4 * (32 + 32) + 96 * 4 + 8 + 32 + 4 + 32 * 64,
        ),
    ],
)
def test_recurrent_mixers_worked_out_by_hand(
    rule: str, fields: dict[str, object], count: int
) -> None:
    spec = small(layers=1, attention=SSM | {"rule": rule} | fields)
    (group,) = spec.groups
    assert parameters.attention_parameters(spec, group.layer) == count


@pytest.mark.parametrize(
    ("tp", "ep", "expert_tp"), [(1, 1, 1), (2, 4, 1), (4, 2, 2), (1, 8, 1)]
)
def test_shares_of_experts_hold_each_once(tp: int, ep: int, expert_tp: int) -> None:
    spec = small(mlp=MOE)
    whole = parameters.module_parameters(spec)["experts"]
    share = parameters.module_parameters(spec, Shares(tp, ep, expert_tp))["experts"]
    assert share * ep * expert_tp == whole


def test_stages_of_a_pipeline_hold_every_parameter_once() -> None:
    spec = ModelSpec.load("deepseek-v3")
    first = parameters.module_parameters(spec, layers=spec.sequence[:31], head=False)
    second = parameters.module_parameters(spec, layers=spec.sequence[31:], embedding=False)
    assert sum((first + second).values()) == spec.parameters


def test_a_tied_head_on_another_stage_is_a_second_table() -> None:
    spec = ModelSpec.load("gpt2-xl")
    last = parameters.module_parameters(spec, layers=(), embedding=False)
    assert last["head"] == spec.vocabulary * spec.hidden
