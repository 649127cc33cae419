"""Nets: states wired into a thinking machine, checked before it runs."""

from __future__ import annotations

from agent_brain.nets.composition import ParallelState, SubnetState
from agent_brain.nets.delegate import Branch, Delegate
from agent_brain.nets.errors import NetDefinitionError, Problem, TransitionError, UnknownNetError
from agent_brain.nets.net import Net, Node, as_net
from agent_brain.nets.react import ReAct, react
from agent_brain.nets.registry import create_net, describe_net, net_names, register_net

__all__ = [
    "Branch",
    "Delegate",
    "Net",
    "NetDefinitionError",
    "Node",
    "ParallelState",
    "Problem",
    "ReAct",
    "SubnetState",
    "TransitionError",
    "UnknownNetError",
    "as_net",
    "create_net",
    "describe_net",
    "net_names",
    "react",
    "register_net",
]
