"""Chips as references name them: a library chip, perhaps cut or changed."""

from __future__ import annotations

from dataclasses import dataclass

from chipsim.chip import Chip


@dataclass(frozen=True, slots=True)
class Subject:
    """What a reference figure is about.

    Attributes
    ----------
    chip : str
        Library name.
    chips : int
        Of them together; 1 unless the reference ran on several.
    cores : int
        Cores after a cut (0: all).
    memory_bandwidth : float
        Memory bandwidth after a cut, bytes/s (0: the chip's own).
    arrays : bool
        False: without its systolic arrays, products run on the vector units.
    execution : str
        Block of the kernels that were timed (empty: the chip's own).
    """

    chip: str
    chips: int = 1
    cores: int = 0
    memory_bandwidth: float = 0.0
    arrays: bool = True
    execution: str = ""

    @property
    def label(self) -> str:
        """Name in a table of errors; cuts of one chip share it."""
        machine = f"{self.chip} x{self.chips}" if self.chips > 1 else self.chip
        return machine if self.arrays else f"{machine}, no arrays"

    def build(self) -> Chip:
        """The chip itself."""
        chip = Chip.load(self.chip)
        if self.cores:
            chip = chip.scaled(cores=self.cores / chip.cores)
        if self.memory_bandwidth:
            chip = chip.scaled(memory_bandwidth=self.memory_bandwidth / chip.memory.bandwidth)
        if not self.arrays:
            core = chip.core.model_copy(update={"systolic_array": None})
            fields = {name: getattr(chip, name) for name in Chip.model_fields}
            chip = Chip.build(chip.name, **(fields | {"core": core}))
        return chip


PUBLIC = {
    "A100_80GB_fp16": Subject("llmcompass-a100"),
    "A100_4_fp16": Subject("llmcompass-a100"),
    "template.json": Subject("llmcompass-a100"),
    "GA100.json": Subject("llmcompass-ga100"),
    "MI210": Subject("llmcompass-mi210"),
    "H100_made": Subject("llmcompass-h100"),
    "H100_made_x8": Subject("llmcompass-h100"),
    "latency_design.json": Subject("llmcompass-latency"),
    "prefilling_system.json": Subject("llmcompass-throughput"),
    "throughput_design.json": Subject("llmcompass-throughput"),
    "TPUv3": Subject("llmcompass-tpu-v3"),
    "TPUv3Link_8": Subject("llmcompass-tpu-v3", chips=4),  # 8 cores, priced as 4 in a ring
    "NVLinkV3_FC_4": Subject("llmcompass-a100", chips=4),
}
"""Devices, systems and configurations of the public LLMCompass. Its ``template.json`` has
2048 GB/s where its code says 2039; a sweep names the bandwidth of each row."""

EAGER = {"a100-sxm": "a100-eager", "mi210": "mi210-eager"}
"""Blocks of what the artifact of LLMCompass measured: PyTorch kernels timed one by one."""

SILICON = {
    "A100": Subject("a100-sxm", execution=EAGER["a100-sxm"]),
    "A100x4": Subject("a100-sxm", chips=4, execution=EAGER["a100-sxm"]),
    "MI210": Subject("mi210", execution=EAGER["mi210"]),
}
"""Measured devices of the artifact of LLMCompass."""

TABLES = {
    "H100x8": Subject("spad-h100"),
    "Prefill_1365GBs_160GB_160core_54MBx8": Subject("spad-early-prefill"),
    "Decoding_66corex8": Subject("spad-early-decode"),
    "Decoding_66corex8_no_Tensor_Core": Subject("spad-early-decode", arrays=False),
}
"""Machines of the latency tables of SPAD's first author: 8 chips each."""
