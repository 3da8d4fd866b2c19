"""A whole phase: model and plan -> operator graph -> estimate."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.estimates import OperatorRow, PhaseEstimate
from chipsim.memory import check_phase
from chipsim.ops.graph import (
    LATENT,
    PLAIN,
    SEQUENCE_GROUPS,
    GraphOptions,
    Nodes,
    Phase,
    phase_nodes,
    sequence_nodes,
)
from chipsim.ops.layers import Latent
from chipsim.ops.loads import UNIFORM, ExpertLoad
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from chipsim.performance import PerformanceModel
from chipsim.pipeline import Pipeline, pipeline

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.execution import Execution
    from chipsim.ops.graph_builder import LatentForm


class PhaseModel:
    """A model on a chip under one plan; phases are remembered.

    Parameters
    ----------
    chip, execution
        As `PerformanceModel`; a `PerformanceModel` itself is taken for both.
    model : ModelSpec or str
        A model, or its library name or path.
    plan : Parallelism or str, optional
        ``"tp=8"``; one chip unless given.
    precision : Precision or str, optional
        ``"bf16"`` or ``"weights=fp8,activations=bf16"``; the model's own for the phase
        unless given, fp16 where it has none.
    load : ExpertLoad or str, optional
        How tokens spread over experts: ``"zipf=1.1"``; evenly unless given.
    layers_only : bool
        Leave embedding, final norm and LM head out (as LLMCompass does).
    check_memory : bool
        Refuse what the memory cannot hold.
    """

    def __init__(
        self,
        chip: Chip | str | PerformanceModel,
        model: ModelSpec | str,
        plan: Parallelism | str | None = None,
        *,
        execution: Execution | str | None = None,
        precision: Precision | str | None = None,
        load: ExpertLoad | str | None = None,
        layers_only: bool = False,
        check_memory: bool = True,
    ) -> None:
        self.performance = (
            chip if isinstance(chip, PerformanceModel) else PerformanceModel(chip, execution)
        )
        self.model = ModelSpec.load(model) if isinstance(model, str) else model
        self.plan = Parallelism.parse(plan) if isinstance(plan, str) else plan or Parallelism()
        self._precision = (
            Precision.parse(precision) if isinstance(precision, str) else precision
        )
        self.load = ExpertLoad.parse(load) if isinstance(load, str) else load or UNIFORM
        self.layers_only, self.check_memory = layers_only, check_memory
        self._known: dict[Phase, PhaseEstimate] = {}

    def precision_of(self, phase: Phase) -> Precision:
        """Formats of a phase: the user's, else the model's own, else fp16."""
        own = self.model.precision
        hint = own.prefill if phase.kind in ("prefill", "encode") else own.decode
        return self._precision or hint or PLAIN

    def estimate(self, phase: Phase) -> PhaseEstimate:
        """Latency of a phase and its operators.

        Raises
        ------
        InfeasibleError
            The plan splits neither model nor machine, or weights and KV do not fit.
        ConfigError
            Prompts are split (``cp``), and there is decode in the phase.
        """
        known = self._known.get(phase)
        if known is None:
            known = self._known[phase] = self._estimate(phase)
        return known

    def sequence_rows(self, phase: Phase) -> tuple[OperatorRow, ...]:
        """Operators of a phase that go with the lengths of its sequences, not remembered.

        Attention above all: `chipsim.ops.graph.SEQUENCE_GROUPS`. Memory is not checked.
        """
        forms = [self.performance.rows(nodes) for nodes in self.sequence_forms(phase)]
        return min(forms, key=_summed)

    def sequence_forms(self, phase: Phase) -> list[Nodes]:
        """The nodes of `sequence_rows` in each form of latent attention that may be run."""
        self._check(phase)
        return [
            sequence_nodes(self.model, phase, **self._graph(phase, form))
            for form in self._forms(phase)
        ]

    def token_nodes(self, phase: Phase) -> Nodes:
        """All other nodes of a phase: they go with its tokens alone.

        The forms of latent attention do not differ in them. Memory is not checked.
        """
        self._check(phase)
        options = self._graph(phase, "absorbed")
        nodes = phase_nodes(self.model, phase, **options, layers_only=self.layers_only)
        return {n: node for n, node in nodes.items() if node["group"] not in SEQUENCE_GROUPS}

    def _check(self, phase: Phase) -> None:
        check_machine(self.performance.chip, self.plan)
        if self.plan.cp > 1 and phase.kind in ("decode", "mixed"):
            allowed = f"1 in {phase.kind}; dcp splits the cached tokens"
            raise ConfigError("plan", "cp", self.plan.cp, allowed)

    def _estimate(self, phase: Phase) -> PhaseEstimate:
        chip = self.performance.chip
        self._check(phase)
        if self.check_memory and phase.kind != "encode":
            check_phase(chip, self.model, self.plan, self.precision_of(phase), phase)
        rows, step = self._step(phase, self._form(phase))
        return PhaseEstimate(
            chip.name,
            self.performance.execution.name,
            self.model.name,
            phase,
            str(self.plan),
            self.model.layers,
            step.latency_s,
            rows,
            step.parts,
            step.stage_s,
            step.bubble,
            self.plan.stage_layers(self.model.layers),
        )

    def _forms(self, phase: Phase) -> tuple[LatentForm, ...]:
        """Forms of latent attention to try: where it prefills, both."""
        latent = any(isinstance(group.layer.mixer, Latent) for group in self.model.groups)
        both = latent and phase.kind in ("prefill", "mixed")
        return LATENT if both else ("absorbed",)

    def _form(self, phase: Phase) -> LatentForm:
        """The fastest of `_forms`: they differ in what goes with the sequences alone."""
        forms = self._forms(phase)
        if len(forms) == 1:
            return forms[0]
        nodes = self.sequence_forms(phase)
        summed = [_summed(self.performance.rows(each)) for each in nodes]
        return forms[summed.index(min(summed))]

    def _step(
        self, phase: Phase, latent: LatentForm
    ) -> tuple[tuple[OperatorRow, ...], Pipeline]:
        """The operators of a step in one form, and how they fill the pipeline."""
        options = self._graph(phase, latent)
        nodes = phase_nodes(self.model, phase, **options, layers_only=self.layers_only)
        rows = self.performance.rows(nodes)
        return rows, pipeline(self.model, self.plan, phase, rows)

    def _graph(self, phase: Phase, latent: LatentForm) -> GraphOptions:
        """What a graph of the phase is built with."""
        kernels = self.performance.execution.kernels
        return {
            "plan": self.plan,
            "attention": kernels.attention,
            "qkv": kernels.qkv,
            "latent": latent,
            "vector_format": kernels.vector_format,
            "precision": self.precision_of(phase),
            "load": self.load,
        }


def _summed(rows: tuple[OperatorRow, ...]) -> float:
    return sum(row.latency_s for row in rows)


def check_machine(chip: Chip, plan: Parallelism) -> None:
    """Refuse a plan of more chips than a machine that stands alone has.

    Raises
    ------
    InfeasibleError
        Says how many it has.
    """
    most = chip.machine.chips
    if plan.chips > most and chip.machine.scale_out is None:
        raise InfeasibleError(
            f"plan: {plan.text} takes {plan.chips} chips; the machine of {chip.name} has "
            f"{most}, and no scale_out to others; allowed: at most {most}"
        )


def estimate(
    chip: Chip | str,
    model: ModelSpec | str,
    phase: Phase,
    plan: Parallelism | str | None = None,
    *,
    execution: Execution | str | None = None,
    precision: Precision | str | None = None,
    load: ExpertLoad | str | None = None,
    layers_only: bool = False,
    check_memory: bool = True,
) -> PhaseEstimate:
    """Estimate one phase; the arguments are those of `PhaseModel`.

    Examples
    --------
    >>> from chipsim import Phase, estimate
    >>> step = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    >>> round(step.latency_s, 3)
    0.044
    """
    build = _kept if _in_library(chip, model, execution) else PhaseModel
    return build(
        chip,
        model,
        plan,
        execution=execution,
        precision=precision,
        load=load,
        layers_only=layers_only,
        check_memory=check_memory,
    ).estimate(phase)


_kept = functools.lru_cache(maxsize=64)(PhaseModel)
"""Phase models asked for by library names, kept for the next call."""


def _in_library(*names: object) -> bool:
    """Whether all are names (or absent): a file of the user's may change between calls."""
    return all(
        name is None or (isinstance(name, str) and not name.endswith((".yaml", ".yml")))
        for name in names
    ) and not any("/" in name for name in names if isinstance(name, str))
