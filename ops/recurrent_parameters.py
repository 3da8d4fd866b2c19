"""Parameters of mixers with a state: Mamba-1 and -2, linear attention, short convolutions.

Under tensor parallelism channels and heads are split; the norms of a scan's step size, B
and C stand on every chip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.layers import Linear, ShortConv

if TYPE_CHECKING:
    from chipsim.ops.layers import Scan


def recurrent_parameters(hidden: int, mixer: Linear | Scan | ShortConv, tp: int = 1) -> int:
    """Projections, convolution, decays and inner norms of a mixer on one of ``tp`` chips."""
    if isinstance(mixer, Linear):
        return _linear_parameters(hidden, mixer, tp)
    channels = mixer.channels // tp
    if isinstance(mixer, ShortConv):  # in (both gates, and what is convolved), taps, out
        return channels * (4 * hidden + mixer.conv)
    # In (x and gate) and out; taps; step size, B and C, and the step size's rank with its
    # bias; A and D (Gu and Dao, Mamba, 2023, and its published module).
    count = channels * (3 * hidden + mixer.conv + mixer.conv_bias)
    count += channels * (scan_width(mixer) + mixer.rank + 1 + mixer.state + 1)
    return count + (scan_width(mixer) if mixer.inner_norms else 0)


def scan_width(mixer: Scan) -> int:
    """Columns that a scan's channels are projected to: rank of the step size, B and C."""
    return mixer.rank + 2 * mixer.state


def linear_widths(mixer: Linear, tp: int = 1) -> tuple[int, int, int]:
    """Channels of a chip that are convolved, those of values, and columns of the input.

    By the published modules of each rule. Beside q, k, v (B, C, x): ``ssm`` projects z and
    dt; ``decay`` a gate; ``delta`` z and two numbers per head; ``kda`` one per head, its
    gates going through a low rank.
    """
    heads, keys = mixer.heads // tp, max(1, mixer.key_heads // tp) * mixer.key_dim
    values = heads * mixer.value_dim
    convolved = 2 * keys + values
    beside = {"ssm": values + heads, "decay": values, "delta": values + 2 * heads, "kda": heads}
    return convolved, values, convolved + beside[mixer.rule]


def _linear_parameters(hidden: int, mixer: Linear, tp: int) -> int:
    """By the published modules of each rule (Mamba-2, gated delta net, KDA, lightning)."""
    heads = mixer.heads // tp
    convolved, values, inputs = linear_widths(mixer, tp)
    count = hidden * (inputs + values) + convolved * (mixer.conv + mixer.conv_bias)
    if mixer.rule == "ssm":  # A, D and the bias of dt; a norm of all heads
        return count + 3 * heads + (values if mixer.norm else 0)
    if mixer.rule == "decay":  # a norm of all heads
        return count + values
    if mixer.rule == "delta":  # A and the bias of dt; a norm of one head
        return count + 2 * heads + mixer.value_dim
    # Decay and gate through a rank of one head; A, the bias of dt; a norm of one head.
    keys = (convolved - values) // 2
    low_rank = 2 * hidden * mixer.value_dim + mixer.value_dim * (keys + values)
    return count + low_rank + heads + keys + mixer.value_dim
