"""Words that say nothing about what is asked (English question and function words)."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again against all almost also although always am an and another any anyone
    anything are aren as ask asked at away be became because become been before being between both
    but by came can cannot could couldn did didn do does doesn doing don done down during each
    either ever every everything few for from further get gets getting give given gives go
    goes going gone got had hadn happen happened happens has hasn have haven having he her here hers
    herself him himself his how however i if in into is isn it its itself just kind let like
    made make makes many may me might more most much must my myself neither no nor not now of off
    often on once one only onto or other others our ours ourselves out over own please quite
    rather really s same say said says see seem seems shall she should shouldn since so some
    somebody someone something still such t take takes taken tell than that the their theirs them
    themselves then there thereby these they thing things this those though through thus to too
    toward towards under until up upon us use used uses using very via was wasn we were weren what
    whatever when whenever where whereas wherever whether which whichever while who whoever whom
    whose why will with within without won would wouldn yes yet you your yours yourself yourselves
    """.split()  # noqa: SIM905 (a list of 250 literals reads worse)
)
