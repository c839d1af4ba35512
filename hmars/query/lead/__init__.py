"""The lead (S-PARSER 3): asks in rounds, every window read for every query, before it answers.

agents.py       what the driver asks of a lead, its readers and its verifier
driver.py       the rounds: ask, scatter, gather, verify, answer
windows.py      the text as readers get it
scatter.py      every query before every window; quotations verified, failures kept apart
observe.py      what the lead is told of what was found
tooled.py       a lead that calls tools, natively or in text (turns.py reads both)
schemed.py      a lead whose replies follow a schema; auto.py tries tools first
rules.py        a lead without a model
readers.py      readers that are asked once; grep.py searches; sentences.py has no model
verifying.py    is the quotation about what the question means?
concluding.py   the answer from the evidence, or the lead's own
trajectory.py   one question as a training example
kept.py         what one question leaves for the next
family.py       which of these a profile means; entry.py: what the facade calls
"""

from __future__ import annotations

from hmars.query.lead.agents import LeadAgents
from hmars.query.lead.driver import LeadResult, ask_lead
from hmars.query.lead.entry import ask_with_lead
from hmars.query.lead.family import lead_roles, lead_settings, model_lead_agents
from hmars.query.lead.kept import LeadMemory
from hmars.query.lead.rules import extractive_lead_agents
from hmars.query.lead.trajectory import Trajectory, append_trajectory

__all__ = [
    "LeadAgents",
    "LeadMemory",
    "LeadResult",
    "Trajectory",
    "append_trajectory",
    "ask_lead",
    "ask_with_lead",
    "extractive_lead_agents",
    "lead_roles",
    "lead_settings",
    "model_lead_agents",
]
