"""``export_test``: the events of a run become a pytest file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_brain.states.events import Event
from agent_brain.testing.cassettes.scrub import Scrubber
from agent_brain.testing.export.errors import ExportError
from agent_brain.testing.export.story import read_story
from agent_brain.testing.export.writing import write_test


def export_test(
    events: Iterable[Event | Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    net: str | None = None,
    scrub: Iterable[str | re.Pattern[str]] = (),
) -> Path:
    """Write a test in which a run happens again, without its model and its tools.

    The model is scripted with what it said, the tools return what they returned, and the test
    asserts the states, the calls and the end as they were: an answer, or the error. Change what it
    asserts to what should have happened, and it shows the bug until it is fixed. The file needs no
    plugin and no fixture; secrets are left out of it.

    Args:
        events: All events of one run, in order: as objects, or as their ``to_dict()`` gave them.
        path: Where to; the test is named after the file.
        net: ``"module:function"`` of a function that makes the net of a model. Not needed for
            registered nets.
        scrub: Regular expressions of what else is not to be written.

    Returns:
        The path.

    Raises:
        ExportError: The events do not tell enough: the run was resumed, cut short from outside, or
            had branches that ran at once; or the net is not known.
    """
    target = Path(path)
    if target.suffix != ".py":
        raise ExportError(f"{str(target)!r} is no Python file: pytest would not find it")
    words = re.sub(r"\W+", "_", target.stem.removeprefix("test_")).strip("_") or "run"
    text = write_test(read_story(events), name=f"test_{words}", net=net, scrubber=Scrubber(scrub))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target
