"""Small talk, and questions about the conversation itself."""

from __future__ import annotations

import re

from agent_brain.demo.asks import Ask

_TOPICS = {
    "hello": r"(?:hello|hi|hey|good (?:morning|evening|afternoon|day)|greetings)"
    r"(?: (?:there|again|you|demo|everyone|all))?",
    "thanks": r"(?:many )?(?:thanks?|thank you|thx|cheers|great|perfect|nice|ok|okay|cool|"
    r"well done)"
    r"(?: (?:you|a lot|so much|very much|again|job))*",
    "bye": r"(?:good ?bye|bye|see you|farewell)(?: (?:bye|later|soon))*",
    "well": r"how are you(?: (?:doing|today))*|how(?:'s| is) it going",
    "who": r"(?:who|what)(?: kind of (?:model|ai|thing))? are you|(?:are|aren't) you (?:an? )?.*|"
    r"(?:introduce|tell me about) yourself|what(?:'s| is) your name|which (?:model|llm) (?:is this|"
    r"are you)",
    "abilities": r"what (?:can|could|do) you (?:do|know)(?: for me)?|help(?: me)?|"
    r"(?:which|what) tools do you have|how (?:do|can) (?:i|you) (?:use you|help me)",
    "first": r"what (?:was|is) (?:my|the) (?:very )?first (?:question|message|request)|"
    r"what did i (?:ask|say) (?:you )?(?:at )?first",
    "before": r"what (?:did|have) i (?:just )?(?:ask|asked|say|said)(?: you)?(?: (?:before|earlier|"
    r"last|previously|just now|so far))?|what (?:was|were) my (?:last|previous|earlier) "
    r"(?:question|message|request)s?(?: before)?",
    "answer": r"what (?:was|is) (?:your|the) (?:last|previous) (?:answer|result|reply)|"
    r"what did you (?:just )?(?:say|answer)(?: (?:before|last|earlier))?|"
    r"repeat (?:that|it|your answer)"
    r"(?: please)?",
    "recall": r"(?:what(?:'s| is)|do you (?:know|remember)) my (?P<thing>[\w ]{2,30})",
    "told": r"(?:by the way,? )?(?:my (?P<what>[\w ]{2,30}?) is (?P<value>[\w .'-]{1,60})|"
    r"(?:i am|i'm|call me) (?P<name>[A-Z][\w'-]+))",
}
_TALK = {topic: re.compile(pattern, re.I) for topic, pattern in _TOPICS.items()}


def read_talk(text: str) -> list[Ask] | None:
    """The small talk that ``text`` is, or None."""
    words = text.replace("\u2019", "'").strip(" ?!.,")
    for topic, pattern in _TALK.items():
        if match := pattern.fullmatch(words):
            found = {name: value for name, value in match.groupdict().items() if value}
            return [Ask("talk", text, {"topic": topic, **found})]
    return None


def read_fact(text: str, thing: str) -> str | None:
    """What ``text`` tells about the user's own ``thing``, such as a name."""
    for sentence in re.split(r"[.!?;\n]|, and |,", text):
        ask = read_talk(
            re.sub(r"^(?:hello|hi|hey|and|so)\b[\s,]*", "", sentence.strip(), flags=re.I)
        )
        if ask is None or ask[0].slots["topic"] != "told":
            continue
        slots = ask[0].slots
        if str(slots.get("what", "")).lower() == thing.lower():
            return str(slots["value"])
        if thing.lower() == "name" and "name" in slots and str(slots["name"])[0].isupper():
            return str(slots["name"])
    return None
