"""llama.cpp inside this process: one server for each model file, on loopback, for all its roles."""

from hmars.llm.embedded.engines import EmbeddedEngines

__all__ = ["EmbeddedEngines"]
