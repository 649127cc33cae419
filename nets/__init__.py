"""Nets: states wired into a thinking machine, checked before it runs."""

from __future__ import annotations

from agent_brain.nets.composition import MapResult, MapState, ParallelState, SubnetState
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.errors import NetDefinitionError, Problem, TransitionError, UnknownNetError
from agent_brain.nets.library.debate import Debate, debate
from agent_brain.nets.library.graph_of_thoughts import GraphOfThoughts, graph_of_thoughts
from agent_brain.nets.library.graph_operations import Aggregate, Generate, KeepBest, Refine, Score
from agent_brain.nets.library.plan_execute import PlanExecute, plan_execute, tools_succeeded
from agent_brain.nets.library.react import ReAct, react
from agent_brain.nets.library.refact import RefAct, refact
from agent_brain.nets.library.reflexion import Reflexion, reflexion
from agent_brain.nets.library.router import Route, Router, router
from agent_brain.nets.library.self_consistency import SelfConsistency, self_consistency
from agent_brain.nets.library.thought_tree import Value
from agent_brain.nets.library.tree_of_thoughts import TreeOfThoughts, tree_of_thoughts
from agent_brain.nets.library.voting import final_answer, majority
from agent_brain.nets.net import Net, Node, as_net
from agent_brain.nets.registry import create_net, describe_net, net_names, register_net

__all__ = [
    "Aggregate",
    "Branch",
    "Debate",
    "Delegate",
    "Generate",
    "GraphOfThoughts",
    "KeepBest",
    "MapResult",
    "MapState",
    "Net",
    "NetDefinitionError",
    "Node",
    "ParallelState",
    "PlanExecute",
    "Problem",
    "ReAct",
    "RefAct",
    "Refine",
    "Reflexion",
    "Route",
    "Router",
    "Score",
    "SelfConsistency",
    "SubnetState",
    "TransitionError",
    "TreeOfThoughts",
    "UnknownNetError",
    "Value",
    "as_net",
    "create_net",
    "debate",
    "describe_net",
    "final_answer",
    "graph_of_thoughts",
    "majority",
    "net_names",
    "plan_execute",
    "react",
    "refact",
    "reflexion",
    "register_net",
    "router",
    "self_consistency",
    "tools_succeeded",
    "tree_of_thoughts",
]
