"""A deployment sketch: what was decided, in the words of Dynamo, llm-d or vLLM.

Field names are those of NVIDIA Dynamo's ``DynamoGraphDeployment`` (nvidia.com/v1beta1), of the
values of llm-d's chart ``llm-d-modelservice``, and of vLLM's configuration files
(``vllm serve --config``). Images, secrets, storage and networks are left to whoever deploys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from chipsim.cluster.deployment import DeployedPool, Deployment

TRANSFER = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
"""NIXL moves KV; which side an instance is on is the proxy's to say."""

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
QUANTISED = {"fp8": "fp8"}
CACHES = {"fp8": "fp8"}
IMAGE = "IMAGE"
PORT = "5600"
"""Of the hand-shake between instances (vLLM's default)."""


def sketch(deployment: Deployment, target: str) -> str:
    """YAML with comments on what was decided.

    Parameters
    ----------
    target : str
        ``dynamo``, ``llm-d`` or ``vllm``.
    """
    documents = TARGETS[target](deployment)
    return "".join(
        f"{'---' + chr(10) if place else ''}{_comments(lines)}{_yaml(data)}"
        for place, (lines, data) in enumerate(documents)
    )


Document = tuple[list[str], dict[str, Any]]


def _head(deployment: Deployment, target: str) -> list[str]:
    unknown = [] if deployment.known else [f"{deployment.model}: name its repository yourself"]
    return [
        f"A sketch for {target}, not a tested deployment: {deployment.name}.",
        "Decided by simulation:",
        *(f"  {line}" for line in deployment.why),
        *(f"  {line}" for pool in deployment.pools for line in _said(pool)),
        *unknown,
    ]


def _said(pool: DeployedPool) -> list[str]:
    """What was decided about a pool, and what no argument of an engine says."""
    said = (
        f"{pool.name}: {pool.instances} x {pool.plan.text} on {pool.chip} ({pool.role}), "
        f"{pool.instances * pool.chips} chips; {pool.max_batch} sequences and "
        f"{pool.max_tokens} tokens a step; simulated with {pool.kv_tokens} tokens of KV a rank"
    )
    left = [
        f"{name} of {value}"
        for name, value, known in (
            ("weights", pool.precision.weights, DTYPES | QUANTISED),
            ("KV", pool.precision.kv, DTYPES | CACHES),
        )
        if value not in known
    ]
    if pool.batching != "chunked":
        left.append(f"batching {pool.batching} (vLLM runs chunked prefill)")
    beyond = [f"  not in the arguments: {', '.join(left)}"] if left else []
    return [said, *beyond]


def _comments(lines: list[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _yaml(data: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, width=96)
    return text


def _options(
    deployment: Deployment, pool: DeployedPool, *, split: bool = True
) -> dict[str, Any]:
    """Arguments of ``vllm serve`` by their long names; ``split``: those of the plan too."""
    plan, precision = pool.plan, pool.precision
    degrees = {
        "tensor-parallel-size": plan.tp,
        "pipeline-parallel-size": plan.pp,
        "data-parallel-size": plan.dp,
    }
    found: dict[str, Any] = {name: n for name, n in degrees.items() if n > 1 and split}
    if plan.ep > 1:
        found["enable-expert-parallel"] = True
    found["dtype"] = DTYPES.get(precision.activations, "auto")
    if precision.weights in QUANTISED:
        found["quantization"] = QUANTISED[precision.weights]
    if precision.kv in CACHES:
        found["kv-cache-dtype"] = CACHES[precision.kv]
    found |= {
        "max-model-len": deployment.longest,
        # A step of vLLM takes at least one token of each sequence.
        "max-num-batched-tokens": max(pool.max_tokens, pool.max_batch),
        "max-num-seqs": pool.max_batch,
        "block-size": pool.block,
        "gpu-memory-utilization": pool.memory_share,
    }
    if deployment.apart:
        found["kv-transfer-config"] = TRANSFER
    return found


def _arguments(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def _plain(name: str) -> str:
    """A name that Kubernetes takes."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")


# ------------------------------------------------------------------ dynamo


def _dynamo(deployment: Deployment) -> list[Document]:
    components = [
        {
            "name": "Frontend",
            "type": "frontend",
            "replicas": 1,
            "podTemplate": {"spec": {"containers": [{"name": "main", "image": IMAGE}]}},
        },
        *(_component(deployment, pool) for pool in deployment.pools),
    ]
    data = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": _plain(deployment.name)},
        "spec": {"components": components},
    }
    return [(_head(deployment, "NVIDIA Dynamo"), data)]


def _component(deployment: Deployment, pool: DeployedPool) -> dict[str, Any]:
    options = _options(deployment, pool)
    words = ["--model", deployment.model, *_arguments(options)]
    if pool.role != "mixed":
        words += ["--disaggregation-mode", pool.role]
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": words,
        "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
        "resources": {"limits": {"nvidia.com/gpu": str(pool.chips // pool.machines)}},
    }
    found: dict[str, Any] = {
        "name": _plain(pool.name),
        "type": "worker" if pool.role == "mixed" else pool.role,
        "replicas": pool.instances,
    }
    if pool.machines > 1:
        found["multinode"] = {"nodeCount": pool.machines}
    return found | {"podTemplate": {"spec": {"containers": [container]}}}


# ------------------------------------------------------------------- llm-d


def _llm_d(deployment: Deployment) -> list[Document]:
    """One release for each pair of pools: the chart has one of either role."""
    first = [pool for pool in deployment.pools if pool.role == "prefill"]
    second = [pool for pool in deployment.pools if pool.role != "prefill"]
    documents: list[Document] = []
    for place in range(max(len(first), len(second))):
        prefill = first[place] if place < len(first) else None
        decode = second[place] if place < len(second) else None
        lines = _head(deployment, "llm-d (values of the chart llm-d-modelservice)")
        if place:
            lines = [f"Release {place + 1}: the same model and labels, other pools."]
        documents.append((lines, _values(deployment, prefill, decode)))
    return documents


def _values(
    deployment: Deployment, prefill: DeployedPool | None, decode: DeployedPool | None
) -> dict[str, Any]:
    pools = [pool for pool in (prefill, decode) if pool is not None]
    return {
        "multinode": any(pool.machines > 1 for pool in pools),
        "accelerator": {"type": "nvidia"},
        "modelArtifacts": {
            "name": deployment.model,
            "uri": f"hf://{deployment.model}",
            "labels": {
                "llm-d.ai/inferenceServing": "true",
                "llm-d.ai/model": _plain(deployment.model),
            },
            "authSecretName": "hf-token-secret",
        },
        "routing": {
            "servicePort": 8000,
            "proxy": {"enabled": deployment.apart, "connector": "nixlv2"},
        },
        "decode": _pods(deployment, decode),
        "prefill": _pods(deployment, prefill),
    }


def _pods(deployment: Deployment, pool: DeployedPool | None) -> dict[str, Any]:
    if pool is None:
        return {"create": False, "replicas": 0}
    plan = pool.plan
    options = _options(deployment, pool, split=False)
    if plan.pp > 1:
        options = {"pipeline-parallel-size": plan.pp} | options
    gpus = str(pool.chips // pool.machines)
    container = {
        "name": "vllm",
        "image": IMAGE,
        "modelCommand": "vllmServe",
        "args": _arguments(options),
        "resources": {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}},
        "mountModelVolume": True,
    }
    if deployment.apart:
        host = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        container["env"] = [
            {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST"} | host,
            {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": PORT},
        ]
    return {
        "create": True,
        "replicas": pool.instances,
        "parallelism": {
            "tensor": plan.tp,
            "data": plan.dp,
            "dataLocal": max(1, plan.dp // pool.machines),
            "workers": pool.machines,
        },
        "containers": [container],
    }


# -------------------------------------------------------------------- vllm


def _vllm(deployment: Deployment) -> list[Document]:
    """A configuration file for each pool: split the documents into files."""
    documents: list[Document] = []
    for place, pool in enumerate(deployment.pools):
        lines = _head(deployment, "vLLM") if not place else []
        lines += [
            f"{pool.name}.yaml: {pool.instances} times on {pool.chips} x {pool.chip}:",
            f"  vllm serve --config {pool.name}.yaml --port PORT",
        ]
        if deployment.apart:
            lines += [
                f"  each with VLLM_NIXL_SIDE_CHANNEL_PORT of its own on a host, from {PORT},",
                f"  behind a proxy that knows it as {pool.role}",
            ]
        documents.append((lines, {"model": deployment.model} | _options(deployment, pool)))
    return documents


TARGETS: dict[str, Callable[[Deployment], list[Document]]] = {
    "dynamo": _dynamo,
    "llm-d": _llm_d,
    "vllm": _vllm,
}
