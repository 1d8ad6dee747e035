"""What in a message of role `user` was typed by the user, and what the program put there."""

import re
from typing import Any

from indexer.sources.codex.values import fields, has_image, texts
from indexer.sources.pictures import IMAGE, first_words

SHELL_COMMAND = "<user_shell_command>"
TURN_ABORTED = "<turn_aborted>"

_AGENTS = "# AGENTS.md instructions for "
_ENVELOPES = {
    "<environment_context>": "</environment_context>",
    "<user_instructions>": "</user_instructions>",
    _AGENTS: "</INSTRUCTIONS>",
    "<INSTRUCTIONS>": "</INSTRUCTIONS>",
    TURN_ABORTED: "</turn_aborted>",
    SHELL_COMMAND: "</user_shell_command>",
    "<skill>": "</skill>",
    "<skills_instructions>": "</skills_instructions>",
    "<apps_instructions>": "</apps_instructions>",
    "<plugins_instructions>": "</plugins_instructions>",
    "<recommended_plugins>": "</recommended_plugins>",
    "<multi_agent_mode>": "</multi_agent_mode>",
    "<codex_internal_context ": "</codex_internal_context>",
    "<goal_context>": "</goal_context>",
    "<permissions instructions>": "</permissions instructions>",
    "<collaboration_mode>": "</collaboration_mode>",
    "<realtime_conversation>": "</realtime_conversation>",
    "<subagent_notification>": "</subagent_notification>",
    "<personality_spec>": "</personality_spec>",
    "<hook_prompt": "</hook_prompt>",
}
"""How each thing that is put before, or instead of, a prompt begins and ends."""

_BRIDGE = "Another language model started to solve this problem"
_REQUEST = re.compile(r"^[ \t]*## My request for Codex:[ \t]*\r?$", re.MULTILINE)
_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|^Current working directory: (.+?)\r?$", re.MULTILINE)
_SHELL = re.compile(r"<command>\n?(.*?)\n?</command>\s*(?:<result>\n?(.*?)\n?</result>)?", re.DOTALL)


def typed(text: str) -> str:
    """What is left of a text when whole envelopes are taken off its front."""
    while True:
        bare = text.lstrip()
        if bare.startswith(_BRIDGE):
            return ""
        opening = next((opening for opening in _ENVELOPES if bare.startswith(opening)), None)
        if opening is None:
            return text
        # The line break behind an envelope is the program's; what comes after it is the user's as it was typed.
        text = bare.partition(_ENVELOPES[opening])[2].lstrip("\r\n")


def prompt(text: str) -> str:
    """The prompt without the context that editors put before it, under a heading of its own."""
    headings = list(_REQUEST.finditer(text))
    return text[headings[-1].end() :].strip() if headings else text


def prompt_of_event(message: str, has_images: bool) -> str:
    """What a user message says; one that is but a picture says so."""
    words = prompt(message)
    return IMAGE if has_images and not words.strip() else words


def prompt_of_item(content: Any) -> str | None:
    """The prompt in an item of role `user`, each of its texts judged alone; None where all of it was injected."""
    left = [typed(text) for text in texts(content)]
    words = prompt("\n".join(text for text in left if text.strip()))
    if words.strip():
        return words
    return IMAGE if has_image(content) and not any(text.strip() for text in texts(content)) else None


def prompt_of_user_message(content: Any) -> str:
    """What a `UserMessage` item says. What it mentions is written in its text, if it has any."""
    words = "\n".join(text for text in texts(content) if text)
    if words.strip() or not isinstance(content, list):
        return prompt_of_event(words, has_image(content))
    names = [f"[{name}]" for part in content if isinstance(name := fields(part).get("name"), str)]
    return " ".join([*names, *([IMAGE] if has_image(content) else [])])


def title_of(prompt_text: str) -> str:
    """The first line of a prompt that is not empty; empty where the user typed none of it."""
    return first_words(typed(prompt_text))


def working_directory(content: Any) -> str | None:
    """The directory that an environment context names, as the oldest files say it nowhere else."""
    for text in texts(content):
        if text.lstrip().startswith("<environment_context>") and (found := _CWD.search(text)):
            return found[1] or found[2]
    return None


def shell_commands(content: Any) -> list[tuple[str, str]]:
    """The commands that the user ran by himself, and what they printed."""
    return [
        (found[1], found[2] or "")
        for text in texts(content)
        if text.lstrip().startswith(SHELL_COMMAND)
        for found in _SHELL.finditer(text)
    ]


def is_abort_marker(content: Any) -> bool:
    return any(text.lstrip().startswith(TURN_ABORTED) for text in texts(content))
