"""How well the best message fits a question, on one scale for all questions.

Scores rank the messages for one question: cosines count by how far they stand out, words by the
best match. So some message always comes out on top, also where none has to do with the question.
The fit tells: from 0, where nothing speaks for any message, to 1, where one has all of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.dates import closeness
from agent_brain.memories.recall.features import Columns
from agent_brain.memories.recall.scoring import Evidence

WORDS = 0.5  # the fit of a message that has all words of the question, where meaning is known too
DATE = 0.5  # the fit of a message of the day that the question names
SPEAKER = 0.2  # the fit of a message by whom the question is about


def best_fit(evidence: Evidence, columns: Columns, counted: NDArray[np.bool_]) -> float:
    """The fit of the best message: what speaks for it adds up as independent evidence does.

    Args:
        evidence: How the question fits every row.
        columns: What is known of each row.
        counted: Which rows may be the best.
    """
    if evidence.likeness is None:
        missing = 1 - evidence.share
    else:
        missing = (1 - evidence.likeness) * (1 - np.float32(WORDS) * evidence.share)
    if evidence.spans:
        missing *= 1 - np.float32(DATE) * closeness(columns.days, evidence.spans)
    if evidence.speaker is not None:
        missing *= 1 - np.float32(SPEAKER) * (columns.speakers == evidence.speaker)
    return float(1 - missing[counted].min(initial=1))
