"""Print the events of a run: live on terminals, steps apart in pipes, or as JSON."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TextIO, TypeAlias

from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import brief, call_text, one_line, whole_call
from agent_brain.cli.screen import MARGIN, Screen
from agent_brain.common.text import count_of, to_compact_json
from agent_brain.memories import Message
from agent_brain.states import events

Voice: TypeAlias = tuple[tuple[str, ...], str | None]


def voice_of(event: events.TextDelta) -> Voice:
    """Return what tells the thoughts of one model call, or of one state, from others."""
    return event.path, event.response_id


class Thoughts:
    """Passes on the thoughts of one branch as they come, and those of others after it."""

    def __init__(self) -> None:
        self._held: dict[Voice, list[events.TextDelta]] = {}  # those of the first are passed on
        self._ended: set[Voice] = set()

    def after(self, event: events.Event) -> Iterator[events.TextDelta]:
        """Yield the thoughts that are to be shown now."""
        match event:
            case events.TextDelta(thought=True):
                self._held.setdefault(voice_of(event), []).append(event)
            case events.ActionRequested():  # it is shown at once, and what led to it before
                for voice in [each for each in self._held if each[0] == event.path]:
                    yield from self._held.pop(voice)
            case (
                events.TextDelta()
                | events.UsageReported()
                | events.StateExited()
                | events.RunFinished()
                | events.RunFailed()
            ):
                self._ended.update(voice for voice in self._held if _ends(event, voice))
        while self._held:
            first = next(iter(self._held))
            yield from self._held[first]
            self._held[first] = []
            if first not in self._ended:
                break
            del self._held[first]
        self._ended &= self._held.keys()


def _ends(event: events.Event, voice: Voice) -> bool:
    path, response = voice
    if isinstance(event, events.UsageReported):
        return response is not None and voice == (event.path, event.response_id)
    return path[: len(event.path)] == event.path


Printer = Callable[[events.Event], None]
TAIL = 40  # characters of an object that grows


@dataclass(slots=True)
class LivePrinter:
    """Writes a run to a screen as it happens: steps as labelled lines, text without a margin.

    Lines of inner nets and branches begin with their names. With ``out``, the answer goes there
    alone, and what the agent says before it is a step.
    """

    screen: Screen
    out: TextIO | None = None
    _: KW_ONLY
    verbose: bool = False
    debug: bool = False
    echo: bool = False
    _block: object = ""  # what was written last: "text", "line", or whose thoughts
    _newlines: str = ""  # at the end of a text; written only if it continues
    _held: list[events.TextDelta] = field(default_factory=list)  # text that may be the answer
    _cited: dict[str, str] = field(default_factory=dict)  # titles of pages by their addresses
    _thoughts: Thoughts = field(default_factory=Thoughts)

    def __call__(self, event: events.Event) -> None:
        """Write the event, and show on a terminal that a state works and has no output yet."""
        if self.out is not None:
            self._hold(event, self.out)
        for thought in self._thoughts.after(event):
            self._say(thought)
        if isinstance(event, events.TextDelta):
            if self.out is None and not event.thought:
                self._say(event)
        elif isinstance(event, events.RunFinished) and self._cited:
            self._show_sources()
        if line := self._line(event):
            label, text, style = line
            self._begin("line")
            self.screen.labelled(label, f"{_branch(event)}{text}", style)
        if isinstance(event, events.ActionFinished) and self.debug and event.exception is not None:
            self.screen.write("".join(traceback.format_exception(event.exception)), "dim")
        if isinstance(event, events.SourcesCited):
            self._cited |= {source.url: source.title for source in event.sources}
        self._show_status(event)
        if isinstance(event, events.RunFinished | events.RunFailed):
            self.screen.end_line()

    def _hold(self, event: events.Event, out: TextIO) -> None:
        """Hold text until it is known whether it is the answer."""
        text = event if isinstance(event, events.TextDelta) and not event.thought else None
        ends = isinstance(event, events.RunFinished | events.RunFailed | events.ActionRequested)
        if self._held and (ends or (text and self._held[-1].step != text.step)):
            said = "".join(each.text for each in self._held)
            branch, self._held = _branch(self._held[0]), []
            if said.strip() and not (
                isinstance(event, events.RunFinished) and event.answer == said
            ):
                self.screen.labelled("said", f"{branch}{said.strip()}")
        if isinstance(event, events.RunFinished) and event.answer:
            out.write(event.answer.removesuffix("\n") + "\n")
            out.flush()
        if text:
            self._held.append(text)
            self._block = ""

    def _show_status(self, event: events.Event) -> None:
        """Show on a terminal what has begun and is not written yet."""
        if isinstance(event, events.StateEntered):
            self.screen.status(f"  waiting   {_branch(event)}{event.state} …")
        elif isinstance(event, events.ActionDelta):
            self.screen.status(f"  writing   {event.name} …")
        elif isinstance(event, events.PartialOutput):
            self.screen.status(f"  writing   {to_compact_json(event.output)[-TAIL:]} …")
        elif isinstance(event, events.StateExited | events.RunFinished | events.RunFailed):
            self.screen.end_status()

    def _show_sources(self) -> None:
        """Write what the answer cites, after it."""
        cited, self._cited = self._cited, {}
        shown = (f"{' '.join(title.split())}  {url}".strip() for url, title in cited.items())
        self._begin("line")
        self.screen.labelled("sources", "\n".join(shown), "dim")

    def _begin(self, block: object) -> None:
        """Begin a block; a blank line separates text from what is around it."""
        if self._block not in ("", block) and "text" in (self._block, block):
            self.screen.line()
        self._block = block

    def _say(self, event: events.TextDelta) -> None:
        block = voice_of(event) if event.thought else "text"
        style, margin = ("dim italic", MARGIN) if event.thought else ("", "")
        text = event.text
        if self._block != block:
            text = text.lstrip("\r\n")
            if not text:
                return
            self._begin(block)
            self._newlines = ""
            if event.thought:
                self.screen.label("thinking", style)
                self.screen.write(_branch(event), style)
        text = self._newlines + text
        shown = text.rstrip("\n")
        self._newlines = text[len(shown) :]
        self.screen.write(shown.replace("\n", f"\n{margin}"), style)

    def _line(self, event: events.Event) -> tuple[str, str, str] | None:
        """Return label, text and style of an event's line, if it has one."""
        match event:
            case events.ActionRequested():
                return "tool", call_text(event.action), "cyan"
            case events.ActionFinished():
                label, style = ("error", "red") if event.result.is_error else ("result", "green")
                return label, f"{event.action.name}: {brief(event.result.content)}", style
            case events.StuckDetected():
                then = "a hint is given" if event.verdict == "hint" else "the run is stopped"
                return "stuck", f"{event.reason}; {then}", "yellow"
            case events.ApprovalRequested() if (
                self.verbose
            ):  # a person is asked, or told how to decide
                return "approval", "; ".join(map(whole_call, event.actions)), "yellow"
            case events.InputRequested() if self.verbose:
                return "question", event.prompt, "yellow"
            case events.SleepRequested():
                return "sleep", f"until {event.until:%Y-%m-%d %H:%M:%S %Z}", "yellow"
            case events.RunStarted(goal=Message() as goal) if self.echo:
                return "you", goal.content, "bold"
            case events.StateEntered() if self.verbose:
                return "state", event.state or "", "dim"
            case events.ToolProgress() if self.verbose:
                done = f"{event.done:g}" + ("" if event.total is None else f" of {event.total:g}")
                return "progress", f"{event.action.name}: {done} {event.message}".rstrip(), "dim"
            case events.RunFinished(usage=usage) if self.verbose:
                parts = [str(event.stop_reason), count_of(event.step, "step")]
                parts.append(count_of(usage.requests, "model call"))
                parts += [count_of(usage.total_tokens, "token")] if usage.total_tokens else []
                parts += [f"${usage.cost:.4f}"] if usage.cost else []
                return "end", ", ".join(parts), "dim"
        return self._other_line(event)

    def _other_line(self, event: events.Event) -> tuple[str, str, str] | None:
        """Return that of an event of a memory, or of the program's own class."""
        if isinstance(event, events.OF_MEMORIES):
            return ("memory", by_memory(event), "dim") if self.verbose else None
        if event.kind not in events.KINDS:
            return event.kind, brief(to_compact_json(event.fields())), "cyan"
        return None


def make_printer(
    options: Options, out: TextIO | None = None, err: TextIO | None = None, *, echo: bool = False
) -> Printer:
    """Return a printer for one run, chosen by the options and by where the output goes."""
    stream = out or sys.stdout
    if options.as_json:
        return lambda event: print(one_line(event.to_json()), file=stream, flush=True)
    live = stream.isatty()
    return LivePrinter(
        Screen(stream if live else err or sys.stderr),
        None if live else stream,
        verbose=options.verbose,
        debug=options.debug,
        echo=echo,
    )


def by_memory(event: events.Event) -> str:
    """Return what a memory did, in words, such as an event ``learned``."""
    match event:
        case events.MessagesRecalled(items=items, tokens=tokens):
            of = [(sum(item.what == what for item in items), what) for what in ("fact", "message")]
            found = " and ".join(count_of(count, what) for count, what in of if count)
            return f"recalled {found} ({count_of(tokens, 'token')})"
        case events.MessagesTrimmed(ids=ids):
            return f"{count_of(len(ids), 'message')} left the window"
        case events.ContextCompacted(tokens_before=before, tokens_after=after):
            return f"summarised {count_of(event.count, 'message')}: {before:,} tokens to {after:,}"
        case events.MemoryEscalated(now=now):
            return f"more than {count_of(event.max_tokens, 'token')}: shows a {now} from now on"
        case events.FactsLearned(added=added, replaced=replaced, refused=refused):
            found = f"{count_of(len(added), 'fact')} from {count_of(event.read, 'message')}"
            return f"learned {found}, {len(replaced)} replaced, {sum(refused.values())} refused"
    return event.kind


def _branch(event: events.Event) -> str:
    """Return the names of the inner nets and branches that an event comes from."""
    return "".join(f"{name} › " for name in event.path)
