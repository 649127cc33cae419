"""OpenAI's API for a server's agent: models, Chat Completions and Responses."""
