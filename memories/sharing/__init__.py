"""One record of messages for several agents: the record, a memory for each agent, and queues."""
