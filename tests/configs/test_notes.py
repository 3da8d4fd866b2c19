from __future__ import annotations

from pathlib import Path

import pytest

from chipsim.arch_configs import locate, names, notes


def test_a_comment_belongs_to_its_key_or_its_section(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "# the whole\nname: a  # its name\ncore:\n  # about cores\n  lanes: 4  # four\n"
        "  deep:\n    x: 1 # one\ntag: 'no#comment'\n"
    )
    assert notes(path) == {
        "": "the whole",
        "name": "its name",
        "core": "about cores",
        "core.lanes": "four",
        "core.deep.x": "one",
    }


@pytest.mark.parametrize("name", names("chips"))
def test_every_comment_of_the_library_is_found(name: str) -> None:
    path = locate("chips", name)
    comments = sum(" # " in line for line in path.read_text().splitlines())
    assert len(notes(path)) >= 0.8 * comments
