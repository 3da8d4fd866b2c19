"""Write a model as YAML, such that reading it back gives the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec


def model_to_yaml(model: ModelSpec) -> str:
    """A model as a YAML file; `ModelSpec.load` of it gives an equal model."""
    content = model.model_dump(mode="json", exclude_defaults=True)
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=92)
    title = "".join(c for c in model.description or model.name if c.isprintable())
    return f"# {title}, written by chipsim; source: see below.\n{text}"


class _Dumper(yaml.SafeDumper):
    """Small mappings and lists on one line, as the library's files have them."""

    def represent_mapping(
        self, tag: str, mapping: Any, flow_style: bool | None = None
    ) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        if not any(isinstance(value, yaml.MappingNode) for _, value in node.value):
            node.flow_style = "layers" not in mapping
        return node

    def represent_sequence(
        self, tag: str, sequence: Any, flow_style: bool | None = None
    ) -> yaml.SequenceNode:
        node = super().represent_sequence(tag, sequence, flow_style)
        node.flow_style = all(isinstance(item, yaml.ScalarNode) for item in node.value)
        return node
