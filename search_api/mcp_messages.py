"""The messages of MCP before the SDK sees them: one JSON-RPC message each, or the error that answers what is none.

The SDK answers what it cannot read differently on each transport and in each protocol era, with the words of its
parser, or not at all. The codes are those of JSON-RPC 2.0, section 5.1.
"""

import json
import math
from typing import Any, TypeAlias

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

MAX_DIGITS = 4000
"""Of a number: JSON knows no limit, but Python reads no more than 4,300 (`sys.set_int_max_str_digits`)."""

Message: TypeAlias = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError


class Unreadable(Exception):
    """What came is no message that can be taken; `error` is the answer to it."""

    def __init__(self, code: int, says: str, request_id: RequestId | None = None) -> None:
        super().__init__(says)
        self.error = error_of(code, says, request_id)


def error_of(code: int, says: str, request_id: RequestId | None = None, data: Any = None) -> JSONRPCError:
    """An error of the protocol; without the id of a request where that could not be read."""
    detail = {} if data is None else {"data": data}
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=says, **detail))


def read_message(source: str) -> Message:
    """The message in a piece of JSON.

    Raises:
        Unreadable: it is no JSON, has an endless number, is not one JSON-RPC message, or is a call of a tool without
            the form of one.
    """
    too_long: list[str] = []

    def whole(digits: str) -> int | float:
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        too_long.append(digits)
        return math.inf  # which is nothing that a message could have here

    try:
        decoded = json.loads(source, parse_constant=_refuse_constant, parse_int=whole)
    except (ValueError, RecursionError):
        raise Unreadable(PARSE_ERROR, "this is no JSON, or it is nested too deeply") from None
    if too_long:
        raise Unreadable(INVALID_REQUEST, f"a number has more than {MAX_DIGITS:,} digits", _id_in(decoded))
    try:
        message: Message | None = jsonrpc_message_adapter.validate_python(decoded, by_name=False)
    except ValidationError:
        message = None
    # With an `id` that is none it is a request that is off, and not a notification, which nobody answers.
    if message is None or (isinstance(message, JSONRPCNotification) and "id" in decoded):
        says = "this is not one JSON-RPC 2.0 message: an object with `jsonrpc`, `method` and, for a request, `id`"
        raise Unreadable(INVALID_REQUEST, says, _id_in(decoded))
    if isinstance(message, JSONRPCRequest) and message.method == "tools/call":
        _check_call(message)
    return message


def as_json(message: Message) -> bytes:
    """A message as it is sent, on one line."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _check_call(request: JSONRPCRequest) -> None:
    """A call names a tool, and its arguments, if any, are an object: anything else is an error of the protocol."""
    params = request.params or {}
    if not isinstance(params.get("name"), str):
        raise Unreadable(INVALID_PARAMS, "name: a call names its tool", request.id)
    if not isinstance(params.get("arguments", {}), dict | None):
        raise Unreadable(INVALID_PARAMS, "arguments: they are an object of names and values", request.id)


def _id_in(decoded: Any) -> RequestId | None:
    found = decoded.get("id") if isinstance(decoded, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
