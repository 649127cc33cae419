"""What is known of each message besides its words and its vector, as arrays."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall import cues
from agent_brain.memories.recall.growing import Growing

PAUSE = 6 * 3600.0  # seconds of silence after which people start on something else
class Columns:
    def __init__(self):
        self.speakers = Growing(np.int32); self.threads = Growing(np.int32)
        self.times = Growing(np.float64); self.days = Growing(np.int32)
        self.times_told = Growing(np.float32); self.questions = Growing(np.float32); self.fullness = Growing(np.float32)
        self._codes = {}
        self.years = Counter()
    def code(self, s): return self._codes.setdefault(s, len(self._codes))
    def add(self, text, sender, time, thread):
        self.speakers.append(-1 if sender is None else self.code(sender))
        self.threads.append(self.code(("t",thread)))
        self.times.append(np.nan if time is None else time.timestamp())
        self.days.append(0 if time is None else time.toordinal())
        if time: self.years[time.year]+=1
        self.times_told.append(cues.tells_time(text)); self.questions.append(cues.is_question(text)); self.fullness.append(cues.fullness(text))
    def places(self):
        t=self.threads.rows; tm=self.times.rows
        br=(t[1:]!=t[:-1])|(np.abs(tm[1:]-tm[:-1])>PAUSE)
        return np.concatenate([[0],np.cumsum(br)]).astype(np.int32)
