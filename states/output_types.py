"""Output types of models: pydantic models, and any other type that pydantic validates.

A type has a :class:`Shape`; a union of objects has members, one of which the data names; tools take
the answer of a model that calls tools; and a program may check what fits the type.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache, partial
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    LiteralString,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, from_json, to_json

from agent_brain.common.json_values import INCOMPLETE, json_values
from agent_brain.common.text import clean
from agent_brain.common.values import (
    check_count,
    check_members,
    error_lines,
    misnamed_fields,
    takes,
)
from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.partial import PartialReader, Secrets
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.schemas import resolved

T = TypeVar("T")

_FENCED = re.compile(r"(```|~~~)(?:\w*[ \t]*\n)?(.*?)\1", re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")

OutputType: TypeAlias = Any
"""A pydantic model, or a type that pydantic validates: ``int``, ``list[str]``, a dataclass, a
``TypedDict``, an ``Enum``, ``Literal[…]``, ``A | B``, ``Annotated[…]``. Python has no type for them
yet."""


class Shape(Generic[T]):
    """The schema of an output type, and the conversion of its values from and to text.

    The model port accepts pydantic models only. For any other type one is created: a type whose
    JSON is an object is used as it is, any other becomes the field ``value`` of an object. Of a
    union of several objects the model names the member that it means in the field ``type``:
    otherwise data with one mistake could fit another member.

    Attributes:
        type: The type.
        name: Its name in prompts and errors.
        model: The pydantic model for the model port.
        members: The members of a union of several objects, by name; else empty.
        is_object: Whether its JSON is an object, and not a field ``value`` of one.

    Args:
        output_type: The type.

    Raises:
        StateDefinitionError: Pydantic cannot validate the type, or JSON Schema cannot describe it.
    """

    def __init__(self, output_type: OutputType) -> None:
        self.type = output_type
        plain = isinstance(output_type, type) and not get_args(output_type)
        self.name = output_type.__name__ if plain else str(output_type).replace("typing.", "")
        self.model: type[BaseModel]
        self._value: Callable[[Any], Any] = lambda model: model
        self.is_object = True
        try:
            if isinstance(output_type, str | BaseModel) or output_type is None:
                raise TypeError("it is a value, not a type")
            self._adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            found = resolved(self._adapter.json_schema())
            check_members(self._adapter)
            title = re.sub(r"\W+", "_", self.name).strip("_")[:60] or "Output"
            make: Callable[..., type[BaseModel]] = partial(create_model, title)
            self.members = members_of(output_type)
            if self.members:
                names: Any = Literal[tuple(self.members)]
                kind = (names, Field(description="Which of them the value is"))
                self.model = make(type=kind, value=(output_type, ...))
            elif "properties" not in found and found.get("type") != "object":
                self.model = make(value=(output_type, ...))
                self._value = attrgetter("value")
                self.is_object = False
            elif isinstance(output_type, type) and issubclass(output_type, BaseModel):
                self.model = output_type
            else:
                self.model = make(__base__=_root_base(), root=(output_type, ...))
                self._value = attrgetter("root")
            self.schema: dict[str, Any] = self.model.model_json_schema()
        except Exception as error:  # pydantic raises various errors for what is not a type
            why = (str(error) or type(error).__name__).splitlines()[0].rstrip(". ")
            raise StateDefinitionError(
                f"output_type={output_type!r} cannot be requested from a model: {why}. Use a "
                "pydantic model, or another type that pydantic validates, such as list[str]"
            ) from error

    @cached_property
    def schema_text(self) -> str:
        """The JSON Schema, as text for a prompt."""
        return json.dumps(self.schema, ensure_ascii=False)

    def read(self, text: str, *, repair: bool = True) -> T:
        """Return the value in ``text``, which is JSON, perhaps with text and code fences around it.

        Of several values that fit, the last one is returned, as models show examples first.

        Args:
            text: The text of the model.
            repair: Also accept JSON that needs repair or is surrounded by text.

        Raises:
            ValidationError: No value fits.
        """
        text = clean(text)
        try:
            return self._from_json(text)
        except ValidationError as error:
            first = error
        if not repair:
            raise first
        wrong = None
        try:
            values = list(json_values(text))
        except ValueError as error:
            raise _invalid(self.name, text, "json_incomplete", INCOMPLETE) from error
        for value in reversed(values):
            try:
                return self._from_json(json.dumps(value))
            except ValidationError as error:
                wrong = wrong or error
        if wrong is None and not self.is_object and text.strip():
            for scalar in _scalars_in(text):
                try:
                    return self._from_scalar(scalar)
                except ValidationError as error:
                    wrong = wrong or error
        raise wrong or first

    def write(self, value: T) -> str:
        """Return ``value`` as text: a string unchanged, anything else as JSON by the schema.

        An object of a union whose data would be read as another member is written with its name.
        """
        written = self._adapter.dump_json(value, by_alias=True).decode()
        name = next((n for n, each in self.members.items() if each.type is type(value)), None)
        if name is not None and type(self._validated(written)) is not type(value):
            return f'{{"type":{json.dumps(name)},"value":{written}}}'
        if not written.startswith('"'):
            return written
        return cast(str, json.loads(written))

    def to_data(self, value: T) -> Any:
        """Return ``value`` as JSON data by the schema."""
        return self._adapter.dump_python(value, mode="json", by_alias=True)

    @cached_property
    def _secrets(self) -> Secrets:
        if "Secret.__get_pydantic_core_schema__" in str(self._adapter.core_schema):
            return "unmarked"  # pydantic.Secret[…], which the JSON Schema does not tell
        return "marked" if '"writeOnly": true' in self.schema_text else "none"

    def partial(self) -> PartialReader:
        """Return a reader of a value whose text has not all come."""
        wrapped = not self.is_object or bool(self.members)
        return PartialReader(self.schema, wrapped=wrapped, secrets=self._secrets)

    def restore(self, value: Any, class_name: str | None = None) -> T:
        """Return the value of stored JSON data; a value of the type is returned unchanged.

        Args:
            value: The data, or a value of the type.
            class_name: The name of the class that it was of, which may be a member of a union.

        Raises:
            ValidationError: It is not of the type.
        """
        member = self.members.get(name_of(class_name or ""))
        kinds = (each.type for each in self.members.values()) if self.members else (self.type,)
        is_value = class_name in (None, type(value).__name__)  # and not JSON of it
        if is_value and any(_holds(kind, value) for kind in kinds):
            return cast(T, value)
        adapter = self._adapter if member is None else member._adapter
        data = to_json(value, by_alias=True, fallback=str)
        try:
            return cast(T, adapter.validate_json(data, by_alias=True, by_name=True))
        except ValidationError:
            return cast(T, self._adapter.validate_python(value, by_alias=True, by_name=True))

    def has(self, class_name: str | None) -> bool:
        """Return whether the type is a class of this name, or a union that has one."""
        return class_name == self.name or name_of(class_name or "") in self.members

    def _from_json(self, text: str) -> T:
        return self._finite(self._validated(text), text)

    def _from_scalar(self, text: str) -> T:
        try:
            return self._from_json(text)
        except ValidationError as error:
            first = error
        try:  # without the quotation marks of JSON
            return self._finite(cast(T, self._adapter.validate_python(text)), text)
        except ValidationError as error:
            is_json = first.errors()[0]["type"] != "json_invalid"
            raise (first if is_json else error) from None

    def _finite(self, value: T, text: str) -> T:
        """Return ``value``; refuse NaN and infinities, which JSON does not have."""
        try:
            from_json(to_json(value, inf_nan_mode="constants", fallback=str), allow_inf_nan=False)
        except ValueError as error:
            what = "NaN and Infinity are not JSON"
            raise _invalid(self.name, text, "finite_number", what) from error
        return value

    def from_data(self, data: Any) -> T:
        """Return the value of JSON data, such as the arguments of a call of an output tool.

        Raises:
            ValidationError: It does not fit.
        """
        return self._from_json(json.dumps(data))

    def unknown_fields(self, data: Any) -> list[str]:
        """Return the fields in ``data`` that the type does not have."""
        schema = resolved(self.schema)
        closed = self.is_object and not schema.get("additionalProperties")
        fields = schema.get("properties", {})
        return [k for k in data if k not in fields] if closed and isinstance(data, dict) else []

    def _validated(self, text: str) -> T:
        if self.members:
            try:
                data = from_json(text)
            except ValueError as error:
                raise _invalid(self.name, text, "json_invalid", "It is not JSON") from error
            return cast(T, choose(self.name, self.members, data))
        try:
            model = self.model.model_validate_json(text)
            return cast(T, self._value(well_named(self.name, model, from_json(text))))
        except ValidationError as error:
            if self.is_object:
                raise
            try:
                bare_value = self._adapter.validate_json(text)
                return cast(T, well_named(self.name, bare_value, from_json(text)))
            except ValidationError as bare:
                if error.errors()[0]["type"] == "model_type":  # it is not meant as an object
                    raise bare from None
            raise


@cache
def _root_base() -> type[BaseModel]:
    """Return the base of models made of types whose JSON is an object."""
    from pydantic import RootModel  # builds a schema, which loads pydantic's plugins

    class Root(RootModel[Any]):
        @classmethod
        def __get_pydantic_json_schema__(
            cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
        ) -> dict[str, Any]:
            return dict(handler.resolve_ref_schema(handler(core_schema)))  # not a reference

    return Root


def _holds(kind: Any, value: Any) -> bool:
    """Return whether ``value`` is an object of a type."""
    try:
        return not get_args(kind) and isinstance(value, kind)
    except TypeError:  # a type without instances, such as a TypedDict
        return False


_known_shape: Callable[[OutputType], Shape[Any]] = lru_cache(maxsize=256)(Shape)


def shape_of(output_type: OutputType | Shape[T]) -> Shape[T]:
    """Return the shape of a type, which is cached.

    Raises:
        StateDefinitionError: The type cannot be requested from a model.
    """
    if isinstance(output_type, Shape):
        return output_type
    try:
        return _known_shape(output_type)
    except TypeError:  # a type that cannot be hashed
        return Shape(output_type)


def _scalars_in(text: str) -> Iterator[str]:
    """Yield the texts that may be a scalar: all of it, then the code fences, the last one first."""
    yield text.strip()
    for _, code in reversed(_FENCED.findall(text)):
        yield code.strip()
    if inline := _INLINE.fullmatch(text.strip()):
        yield inline[1].strip()


def _invalid(name: str, data: Any, kind: LiteralString, *problems: str) -> ValidationError:
    """Return the error that says what is wrong with the data of a type."""
    details: list[InitErrorDetails] = [
        {"type": PydanticCustomError(kind, "{problem}", {"problem": problem}), "input": data}
        for problem in problems
    ]
    return ValidationError.from_exception_data(name, details)


def members_of(kind: Any) -> dict[str, Shape[Any]]:
    """Return the members of a union with at least two types of objects, by name; else nothing.

    A union with a discriminator says itself which member data is.
    """
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        if any(isinstance(note, FieldInfo) and note.discriminator is not None for note in notes):
            return {}
    if get_origin(kind) not in (typing.Union, types.UnionType):
        return {}
    members: dict[str, Shape[Any]] = {}
    for part in get_args(kind):
        name = name_of(part)
        members[f"{name}_{len(members) + 1}" if name in members else name] = shape_of(part)
    return members if sum(member.is_object for member in members.values()) > 1 else {}


def choose(name: str, members: Mapping[str, Shape[Any]], data: Any) -> Any:
    """Return the value of ``data``, which names its member, or fits one without unknown fields.

    Args:
        name: The name of the union.
        members: Its members.
        data: JSON data: ``{"type": "NAME", "value": …}``, or the value alone.

    Raises:
        ValidationError: It fits none of them; with the errors of the named one, or of each.
    """
    if isinstance(data, dict) and data.keys() == {"type", "value"} and data["type"] in members:
        return members[data["type"]].from_data(data["value"])
    if isinstance(data, dict) and data.keys() == {"value"}:
        data = data["value"]
    problems: list[str] = []
    for label, member in members.items():
        if unknown := member.unknown_fields(data):
            problems.append(f"{label}: it has no field {', '.join(map(repr, unknown))}")
            continue
        try:
            return member.from_data(data)
        except ValidationError as error:
            problems += (f"{label}: {line}" for line in error_lines(error))
    names = ", ".join(map(repr, members))
    what = f'name one of {names} in "type", and give its data in "value" ({"; ".join(problems)})'
    raise _invalid(name, data, "no_member", what)


def well_named(name: str, read: T, data: Any) -> T:
    """Return ``read``, the value of ``data``; see :func:`misnamed_fields`.

    Args:
        name: The name of its type.
        read: The value.
        data: JSON data.

    Raises:
        ValidationError: An object in it has unknown fields, and none of its own.
    """
    if problems := [*misnamed_fields(read, data, some=True)]:
        raise _invalid(name, data, "misnamed", *problems)
    return read


def name_of(kind: Any) -> str:
    """Return the name of a member, without signs that the name of a tool cannot have.

    Args:
        kind: The type, or its name.
    """
    name = getattr(kind, "__name__", None) or str(kind)
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]


OUTPUT = "output"
"""Key in the metadata of a message whose text is the data of the run's output."""


OUTPUT_NAME = "final_result"
"""How the names of these tools begin."""


class OutputTool(BaseTool):
    """A tool that takes the answer; it is offered to a model and never run.

    Args:
        name: Its name.
        what: What it takes, in words.
        shape: The type of what it takes.
    """

    def __init__(self, name: str, what: str, shape: Shape[Any]) -> None:
        schema = resolved(shape.schema)
        super().__init__(name, f"Give the final answer of the task: {what}.", schema)
        self.shape = shape

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``args``, which :func:`read_output` validates."""
        return dict(args)

    async def execute(self, **kwargs: Any) -> Any:
        """Not called: the state that offers the tool takes the answer.

        Raises:
            StateDefinitionError: Always.
        """
        raise StateDefinitionError(f"{self.name!r} takes the answer and is not run")


def output_tools(shape: Shape[Any]) -> dict[str, OutputTool]:
    """Return the tools for an output type by name: one for each member of a union of objects."""
    if not shape.members:
        return {OUTPUT_NAME: OutputTool(OUTPUT_NAME, shape.name, shape)}
    named = {f"{OUTPUT_NAME}_{name}": name for name in shape.members}
    return {name: OutputTool(name, what, shape.members[what]) for name, what in named.items()}


def check_names(outputs: Iterable[str], offered: Iterable[str]) -> None:
    """Check that no other tool has the name of an output tool.

    Raises:
        StateDefinitionError: One has.
    """
    if taken := {*outputs} & {*offered}:
        raise StateDefinitionError(
            f"The tool {min(taken)!r} has the name of the tool that takes the answer: rename it"
        )


def read_output(calls: list[Action], tools: dict[str, OutputTool]) -> tuple[Any, str | None]:
    """Return the data in the calls of output tools, and what is wrong with it.

    Args:
        calls: The calls of output tools in a response; at least one.
        tools: The output tools.
    """
    call = calls[0]
    if len(calls) > 1:
        names = " and ".join(repr(one.name) for one in calls)
        return None, f"{names} were called: give one answer"
    if call.unparsed is not None:
        return None, f"the arguments of {call.name!r} are not a JSON object"
    try:
        return tools[call.name].shape.from_data(call.args), None
    except ValidationError as error:
        return None, "; ".join(error_lines(error, "the answer"))


Problem: TypeAlias = str | Awaitable[str | None] | None
Check: TypeAlias = Callable[[Memory, Any], Problem] | Callable[[Any], Problem]
"""A function of the data, or of the memory and the data, sync or async, that returns what is wrong
with it, for the model, or None. ``memory.deps`` is what the run was given."""


class Checks:
    """A check and how often data that is not valid goes back to the model.

    Attributes:
        corrections: How often the model may correct itself.

    Args:
        check: The check, if there is one.
        corrections: How often the model may correct itself.
        output_type: The type of the data, if there is one.

    Raises:
        StateDefinitionError: ``check`` is not a function of one or two arguments, or there is no
            output type to check; or ``corrections`` is below 0.
    """

    def __init__(self, check: Check | None, corrections: int, output_type: OutputType) -> None:
        check_count(StateDefinitionError, "corrections", corrections, least=0)
        if check is not None and output_type is None:
            raise StateDefinitionError("check= looks at data: give output_type= too")
        self._check: Callable[..., Problem] | None = check
        self.corrections = corrections
        self._takes_memory = check is not None and not takes(check, "data")
        if self._takes_memory and not takes(check, "memory", "data"):
            raise StateDefinitionError(
                f"check={check!r:.200}: it must be a function that is called as check(data) or "
                "check(memory, data)"
            )

    def of(self, memory: Memory) -> dict[str, Any]:
        """Return the arguments of a :class:`StructuredRequest`."""
        check = self._check
        if check is not None and self._takes_memory:
            check = partial(check, memory)
        return {"check": check, "corrections": self.corrections}


def checked_problem(problem: object) -> str | None:
    """Return what a check has returned.

    Raises:
        StateDefinitionError: It is not text.
    """
    if problem is None or isinstance(problem, str):
        return problem or None
    raise StateDefinitionError(
        f"check= returned {problem!r:.100}: it returns what is wrong, as text, or None"
    )
