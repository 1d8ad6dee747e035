"""Tool calls from their beginning to their end, which several records tell of, in any order."""

from collections.abc import Callable
from typing import Any

from indexer.sources.base import Call as AgentCall
from indexer.sources.codex import tools
from indexer.sources.codex.state import MAX_CLOSED_TOOLS, MAX_PROCESSES, MAX_TWINS, State, Tool
from indexer.sources.codex.tools import MCP, Call, Result
from indexer.sources.codex.turns import Place, Turns
from indexer.sources.codex.values import digest
from indexer.sources.values import text
from schemas.items import Item, Kind, Status

BEGINNING_CHARS = 500
"""So much of the output of a call is remembered, to know whether it says what went wrong,"""

MAX_ERROR_CHARS = 4000
"""and an error as long as it is not longer."""

_SPAWNS = frozenset({"spawn_agent", "spawn"})


class Calls:
    """The tool calls of one part."""

    def __init__(self, state: State, turns: Turns, add: Callable[[Item], Place]) -> None:
        self.state = state
        self.turns = turns
        self.agents: dict[str, AgentCall] = {}
        """Calls that start subagents, by their ids."""
        self._add = add

    def open(self, id_: str | None, name: str, namespace: str | None, arguments: Any, at_ms: int | None) -> None:
        call = tools.call(name, namespace, arguments)
        known = self.state.tools.get(id_) if id_ else None
        if known is not None and not known.has_call:
            known.has_call = True  # an event told of it before
            self.turns.complete(known.place, label=call.label, input=call.input)
            return
        place = self._add(Item(Kind.TOOL, label=call.label, status=Status.RUNNING, input=call.input, at_ms=at_ms))
        if id_ is None:
            return
        tool = Tool(*place, process=call.process, starts_agent=name in _SPAWNS, beginning=_nothing_yet(call))
        self._remember(id_, tool)
        if name == tools.PROGRAM:
            self.state.program = id_
        if tool.starts_agent:
            self.agents[id_] = AgentCall(id_, *place)

    def close(self, tool: Tool, told: Result, at_ms: int | None, label: str = "") -> None:
        """Complete a call with an account of its end, of which there may be two; `label` is what that one calls it."""
        status = told.status
        if tool.process is not None:
            status = self._told_of_process(tool.process, told)
        if status is not None:
            tool.is_sure = True
        elif not tool.is_sure:
            status = Status.OK
        output = self._settle(tool, told, label, at_ms)
        self.turns.complete(tool.place, status=status, output=output)
        tool.is_open = False
        if told.process is not None and tool.process is None:
            self._runs_on(told.process, tool.place)

    def _settle(self, tool: Tool, told: Result, label: str, at_ms: int | None) -> str | None:
        """The output that a call gets from one more account of its end; None leaves what it has.

        Of two outputs, one of which may be cut for the model, that is the longer one. An error that is told apart is
        the output as long as there is none; beside one that does not say it, it is a process.
        """
        if told.error is not None and not tool.is_error_told:
            tool.is_error_told = True
            if not tool.output_chars and len(told.error) <= MAX_ERROR_CHARS:
                tool.error = [label, told.error]
                return told.error
            if told.error not in (tool.beginning or ""):
                self._add_error(label, told.error, at_ms)
        if told.output is None or len(told.output) <= tool.output_chars:
            return None
        if tool.error:
            (label, error), tool.error = tool.error, []
            if error not in told.output:
                self._add_error(label, error, at_ms)
        tool.output_chars = len(told.output)
        if tool.beginning is not None:
            tool.beginning = told.output[:BEGINNING_CHARS]
        return told.output

    def _add_error(self, label: str, error: str, at_ms: int | None) -> None:
        self._add(Item(Kind.PROCESS, command=label or None, output=error, at_ms=at_ms))

    def _runs_on(self, process: str, place: Place) -> None:
        processes = self.state.processes
        processes[process] = place
        if len(processes) > MAX_PROCESSES:
            del processes[next(iter(processes))]

    def _told_of_process(self, process: str, told: Result) -> Status | None:
        """What an answer of a running process says of the call that started it, and of the one that asked."""
        if told.status is Status.RUNNING:
            return Status.OK
        place = self.state.processes.get(process)
        if place is not None and told.status is not None:
            del self.state.processes[process]
            self.turns.complete(place, status=told.status)
        return told.status

    def take_event(
        self,
        event: dict[str, Any],
        call: Call,
        told: Result,
        at_ms: int | None,
        *,
        is_end: bool = True,
        is_lone: bool = False,
    ) -> None:
        """What an event tells of a tool: more about a call, or all there is to know of one that a program made."""
        id_ = text(event.get("call_id")) or text(event.get("callId")) or text(event.get("id"))
        known = self.state.tools.get(id_) if id_ else None
        if known is not None:
            if is_end:
                self.close(known, told, at_ms, call.label)
            return
        if is_lone:
            self.take_lone("event", id_, call, told, at_ms)
            return
        program = self.state.tools.get(self.state.program or "")
        if program is not None:
            # The tools that it calls tell better what it does than its first line.
            self.turns.complete(program.place, label=tools.PROGRAM)
        place = self._add(Item(Kind.TOOL, label=call.label, status=Status.RUNNING, input=call.input, at_ms=at_ms))
        tool = Tool(*place, has_call=False, beginning=_nothing_yet(call))
        if id_ is not None:
            self._remember(id_, tool)
        if is_end:
            self.close(tool, told, at_ms, call.label)

    def take_lone(self, layer: str, id_: str | None, call: Call, told: Result, at_ms: int | None) -> None:
        """A tool that is told of in one record of each layer, perhaps without a common id."""
        if id_ is not None and id_ in self.state.tools:
            return
        twins = self.state.twins
        label = digest(call.label)
        twin = next((twin for twin in twins if twin[0] != layer and twin[1] == label), None)
        if twin is not None:
            twins.remove(twin)
            return
        twins.append((layer, label))
        del twins[:-MAX_TWINS]
        status = told.status or Status.OK
        place = self._add(
            Item(Kind.TOOL, label=call.label, status=status, input=call.input, output=told.output, at_ms=at_ms)
        )
        self.note(id_, place, told)

    def note(self, id_: str | None, place: Place, told: Result) -> None:
        if id_ is not None:
            chars, is_sure = len(told.output or ""), told.status is not None
            self._remember(id_, Tool(*place, has_call=False, is_open=False, is_sure=is_sure, output_chars=chars))

    def note_agent(self, id_: str, tool: Tool, session: str) -> None:
        self.agents[id_] = AgentCall(id_, *tool.place, session)

    def _remember(self, id_: str, tool: Tool) -> None:
        known = self.state.tools
        known.pop(id_, None)
        known[id_] = tool
        if len(known) > 2 * MAX_CLOSED_TOOLS:
            closed = [id_ for id_, tool in known.items() if not tool.is_open]
            for id_ in closed[:-MAX_CLOSED_TOOLS]:
                del known[id_]

    def interrupt(self) -> None:
        """What has no output when its turn ends will have none, unless one comes late."""
        for tool in self.state.tools.values():
            if tool.is_open:
                tool.is_open = False
                self.turns.complete(tool.place, status=Status.FAILED)

    def give_up(self) -> bool:
        """Nothing was written for long: what runs was interrupted, processes too. Whether anything did."""
        processes = self.state.processes
        has_running = bool(processes) or any(tool.is_open for tool in self.state.tools.values())
        self.interrupt()
        for place in processes.values():
            self.turns.complete(place, status=Status.FAILED)
        processes.clear()
        return has_running

    def add_stderr(self, call: Call, event: dict[str, Any], at_ms: int | None) -> None:
        stderr = text(event.get("stderr"))
        if stderr and stderr.strip():
            command = call.label.removeprefix("shell: ")
            self._add(Item(Kind.PROCESS, command=command, output=stderr, at_ms=at_ms))


def _nothing_yet(call: Call) -> str | None:
    """The beginning of an output that is not there yet, of a tool whose errors are told apart."""
    return "" if call.label.startswith(MCP) else None
