"""Nets: states wired into a thinking machine, checked before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.nets.composition import ParallelState as ParallelState
    from agent_brain.nets.composition import SubnetState as SubnetState
    from agent_brain.nets.delegation import Branch as Branch
    from agent_brain.nets.delegation import Delegate as Delegate
    from agent_brain.nets.errors import NetDefinitionError as NetDefinitionError
    from agent_brain.nets.errors import Problem as Problem
    from agent_brain.nets.errors import TransitionError as TransitionError
    from agent_brain.nets.errors import UnknownNetError as UnknownNetError
    from agent_brain.nets.library.debate import Debate as Debate
    from agent_brain.nets.library.debate import debate as debate
    from agent_brain.nets.library.graph_of_thoughts import GraphOfThoughts as GraphOfThoughts
    from agent_brain.nets.library.graph_of_thoughts import graph_of_thoughts as graph_of_thoughts
    from agent_brain.nets.library.graph_operations import Aggregate as Aggregate
    from agent_brain.nets.library.graph_operations import Generate as Generate
    from agent_brain.nets.library.graph_operations import KeepBest as KeepBest
    from agent_brain.nets.library.graph_operations import Refine as Refine
    from agent_brain.nets.library.graph_operations import Score as Score
    from agent_brain.nets.library.handoff import HandoffAgent as HandoffAgent
    from agent_brain.nets.library.handoff import handoff as handoff
    from agent_brain.nets.library.learn import Learn as Learn
    from agent_brain.nets.library.learn import learn as learn
    from agent_brain.nets.library.plan_execute import PlanExecute as PlanExecute
    from agent_brain.nets.library.plan_execute import plan_execute as plan_execute
    from agent_brain.nets.library.plan_execute import tools_succeeded as tools_succeeded
    from agent_brain.nets.library.react import ReAct as ReAct
    from agent_brain.nets.library.react import react as react
    from agent_brain.nets.library.refact import RefAct as RefAct
    from agent_brain.nets.library.refact import refact as refact
    from agent_brain.nets.library.reflexion import Reflexion as Reflexion
    from agent_brain.nets.library.reflexion import reflexion as reflexion
    from agent_brain.nets.library.router import Route as Route
    from agent_brain.nets.library.router import Router as Router
    from agent_brain.nets.library.router import router as router
    from agent_brain.nets.library.self_consistency import SelfConsistency as SelfConsistency
    from agent_brain.nets.library.self_consistency import self_consistency as self_consistency
    from agent_brain.nets.library.thought_tree import Value as Value
    from agent_brain.nets.library.tree_of_thoughts import TreeOfThoughts as TreeOfThoughts
    from agent_brain.nets.library.tree_of_thoughts import tree_of_thoughts as tree_of_thoughts
    from agent_brain.nets.library.voting import final_answer as final_answer
    from agent_brain.nets.library.voting import majority as majority
    from agent_brain.nets.map_state import MapResult as MapResult
    from agent_brain.nets.map_state import MapState as MapState
    from agent_brain.nets.net import Net as Net
    from agent_brain.nets.net import Node as Node
    from agent_brain.nets.net import as_net as as_net
    from agent_brain.nets.registry import create_net as create_net
    from agent_brain.nets.registry import describe_net as describe_net
    from agent_brain.nets.registry import net_names as net_names
    from agent_brain.nets.registry import register_net as register_net
