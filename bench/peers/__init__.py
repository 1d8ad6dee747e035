"""The tools that turndex is compared with, each driven without a terminal and in a home of its own."""

from bench.peers.agentsview import AgentsView, AgentsViewFts
from bench.peers.aichat import Aichat
from bench.peers.base import Peer
from bench.peers.cc_search import CcSearch
from bench.peers.deja import Deja, DejaExpression
from bench.peers.fast_resume import FastResume
from bench.peers.own import Turndex, TurndexClaude, TurndexCommand
from bench.peers.ripgrep import Ripgrep
from bench.peers.scan import Scan
from bench.peers.sqlite import Trigram, Unicode61

PEERS: list[type[Peer]] = [
    Turndex,
    TurndexCommand,
    TurndexClaude,
    Ripgrep,
    Trigram,
    Unicode61,
    Scan,
    AgentsView,
    AgentsViewFts,
    FastResume,
    CcSearch,
    Aichat,
    Deja,
    DejaExpression,
]
"""In the order in which they are measured and shown."""
