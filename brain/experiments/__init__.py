"""Experiments: which net, which memory, which model for your tasks.

::

    from agent_brain.experiments import Experiment, basics

    experiment = Experiment(
        nets=["react", "plan_execute"],
        memories=["messages", "vector"],
        models=["openai/gpt-4.1-mini"],
        tasks=basics(),
    )
    report = await experiment.run("results")
    print(report.to_markdown())
"""
