"""What was decided about a cluster, as a deployment needs it: pools, plans, limits of batches.

Cluster + counts -> Deployment; `chipsim.present.deployment` writes it for serving engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.scenario import Role
    from chipsim.cluster.simulate import Cluster
    from chipsim.ops.plan import Parallelism
    from chipsim.ops.precision import Precision

REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+), config\.json")
"""How a model's source names the repository that its configuration was read from."""


@dataclass(frozen=True, slots=True)
class DeployedPool:
    """Instances that are alike.

    Attributes
    ----------
    name, role, chip : str
    instances : int
    chips, machines : int
        Of one instance; machines that it stands in.
    plan : Parallelism
    precision : Precision
    max_tokens, max_batch, block, kv_tokens : int
        Of a rank.
    memory_share : float
    batching : str
    """

    name: str
    role: Role
    chip: str
    instances: int
    chips: int
    machines: int
    plan: Parallelism
    precision: Precision
    max_tokens: int
    max_batch: int
    block: int
    kv_tokens: int
    memory_share: float
    batching: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A cluster to set up.

    Attributes
    ----------
    name : str
    model : str
        Repository of the model, as its description's source has it; else its name here.
    known : bool
        Whether ``model`` is a repository.
    longest : int
        Tokens of the longest request.
    pools : tuple of DeployedPool
    why : tuple of str
        What was decided, in lines.
    """

    name: str
    model: str
    known: bool
    longest: int
    pools: tuple[DeployedPool, ...]
    why: tuple[str, ...]

    @property
    def apart(self) -> bool:
        """Whether prefill and decode are apart, so that KV is handed over."""
        return any(pool.role != "mixed" for pool in self.pools)

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        instances: Mapping[str, int] | None = None,
        why: Sequence[str] = (),
    ) -> Deployment:
        """Of a cluster and the counts that were found for it (the scenario's unless given).

        Raises
        ------
        ConfigError
            A pool of measured steps, which no chip stands for.
        """
        scenario, served = cluster.scenario, cluster.workload
        named = REPOSITORY.search(cluster.model.source)
        longest = int((served.prompt_tokens + served.output_tokens).max())
        counts = instances or {name: p.instances for name, p in scenario.pools.items()}
        pools = tuple(_pool(cluster, name, count) for name, count in counts.items() if count)
        model = named.group(1) if named else cluster.model.name
        return cls(scenario.name, model, named is not None, longest, pools, tuple(why))


def _pool(cluster: Cluster, name: str, count: int) -> DeployedPool:
    pool, replica, held = (
        cluster.scenario.pools[name],
        cluster.replicas[name],
        cluster.capacity(name),
    )
    if replica.chip is None or pool.chip is None:
        where = f"pools.{name}.chip"
        raise ConfigError(cluster.scenario.name, where, None, "a chip, to deploy it")
    per_machine = replica.chip.machine.chips
    return DeployedPool(
        name,
        pool.role,
        pool.chip,
        count,
        held.chips,
        -(-held.chips // per_machine),
        replica.plan,
        replica.precision,
        pool.max_tokens,
        pool.max_batch,
        pool.block,
        held.kv_blocks * held.block,
        pool.memory_share,
        pool.batching,
    )
