"""Arithmetic in several steps, with a tool for each operation."""

from __future__ import annotations

from random import Random

from agent_brain.experiments.expressions import Expression, Operation, value_of, write
from agent_brain.experiments.task import Task
from agent_brain.tools.base import BaseTool
from agent_brain.tools.function import tool

_WORDS = (
    "What is {sum}?",
    "Calculate {sum}.",
    "Order {order} came with {boxes} boxes, which does not matter here. What is {sum}?",
    "What is {sum}? The form with number {order} is another matter.",
)


def arithmetic(random: Random, name: str) -> Task:
    """Return a task: an expression of three to five operations, among numbers that do not count."""
    expression = make_expression(random, random.randint(3, 5))
    text = random.choice(_WORDS).format(
        sum=write(expression), order=random.randrange(1000, 9999), boxes=random.randrange(2, 99)
    )
    return Task(
        id=name,
        turns=text,
        expected=int(value_of(expression)),
        tools=calculators,
        tags=["arithmetic"],
    )


def make_expression(random: Random, operations: int) -> Expression:
    """Return an expression with this many operations, whose every value is a whole number."""
    expression: Expression = random.randint(11, 99)
    for _ in range(operations):
        symbol = random.choice("+-*")
        other: Expression = random.randint(2, 9) if symbol == "*" else random.randint(11, 999)
        if symbol != "*" and random.random() < 0.3:
            other = Operation("*", random.randint(11, 99), random.randint(2, 9))
        sides = (other, expression) if random.random() < 0.3 else (expression, other)
        expression = Operation(symbol, *sides)
    return expression


def calculators() -> list[BaseTool]:
    """Return tools for the operations, and one that nobody needs."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @tool
    def subtract(a: int, b: int) -> int:
        """Subtract the whole number b from a."""
        return a - b

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiply two whole numbers."""
        return a * b

    @tool
    def largest(a: int, b: int) -> int:
        """Compare two whole numbers and return the larger one."""
        return max(a, b)

    return [add, subtract, multiply, largest]
