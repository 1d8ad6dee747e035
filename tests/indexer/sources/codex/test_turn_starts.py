import pytest

from schemas.items import Item, Kind
from tests.indexer.sources.codex.rollouts import (
    CHILD,
    CodexHome,
    Line,
    agent,
    call,
    complete,
    context,
    event,
    item,
    meta,
    second,
    shown,
    spawned,
    started,
    user,
    user_event,
    user_item,
)

INJECTED = [
    "<environment_context>\n<cwd>/home/a/kettle</cwd>\n</environment_context>",
    "<user_instructions>\nBe brief.\n</user_instructions>",
    "# AGENTS.md instructions for /home/a/kettle\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
    "<INSTRUCTIONS>Be brief.</INSTRUCTIONS>",
    "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
    "<skill>\n<name>kettle</name>\n</skill>",
    "<skills_instructions>s</skills_instructions>",
    "<apps_instructions>s</apps_instructions>",
    "<plugins_instructions>s</plugins_instructions>",
    "<recommended_plugins>s</recommended_plugins>",
    "<multi_agent_mode>s</multi_agent_mode>",
    '<codex_internal_context source="goal">go on</codex_internal_context>',
    "<goal_context>s</goal_context>",
    "<permissions instructions>s</permissions instructions>",
    "<collaboration_mode>s</collaboration_mode>",
    "<realtime_conversation>s</realtime_conversation>",
    "<subagent_notification>{}</subagent_notification>",
    "<personality_spec>s</personality_spec>",
    '<hook_prompt hook="stop">go on</hook_prompt>',
    "Another language model started to solve this problem and produced a summary",
]


def test_every_user_message_starts_a_turn_at_its_place(codex: CodexHome) -> None:
    session = codex.session(*user("One"), agent("a"), *user("Two"), agent("b"), agent("c"))
    assert session.texts == [["One", "a"], ["Two", "b", "c"]]
    assert [turn.at_ms for turn in session.turns] == [second(1), second(4)]
    assert session.turns[0].items[0] == Item(Kind.USER, text="One", at_ms=second(1))


@pytest.mark.parametrize("between", ["", "\n", "\r\n", "\n\n"])
def test_a_prompt_behind_what_was_injected_is_the_same_when_it_is_sent_again(codex: CodexHome, between: str) -> None:
    session = codex.session(
        user_item(f"{INJECTED[0]}{between}  One\n"),
        agent("a"),
        user_item(INJECTED[4]),
        user_item("  One\n"),
        user_item("Two"),
    )
    assert session.texts == [["  One\n", "a"], ["Two"]]


def test_every_user_message_of_a_paginated_file_starts_a_turn(codex: CodexHome) -> None:
    content = [{"type": "text", "text": "One"}, {"type": "mention", "name": "kettle", "path": "/k"}]
    session = codex.session(
        user_item("One"), shown("UserMessage", content=content), agent("a"), header=meta(history_mode="paginated")
    )
    assert session.texts == [["One", "a"]]


def test_the_twin_of_a_user_message_is_never_content_of_the_turn_before(codex: CodexHome) -> None:
    session = codex.session(*user("One"), agent("a"), user_item("Two"), context("T2"), agent("b"), user_event("Two"))
    assert session.texts == [["One", "a", "b"], ["Two"]]


def test_with_events_a_user_item_alone_is_no_turn(codex: CodexHome) -> None:
    hook = user_item("Goal continuation: please go on")
    session = codex.session(hook, *user("One"), agent("a"), hook, agent("b"))
    assert session.texts == [["One", "a", "b"]]


@pytest.mark.parametrize("kind", ["environment_context", "user_instructions"])
def test_a_user_message_of_a_kind_that_is_not_plain_is_no_turn(codex: CodexHome, kind: str) -> None:
    session = codex.session(user_event("<x>", kind=kind), user_event("One", kind="plain"), user_event("Two"))
    assert session.prompts == ["One", "Two"]


def test_of_both_kinds_of_user_messages_in_one_file_the_neighbour_with_the_same_text_is_dropped(
    codex: CodexHome,
) -> None:
    def both(text: str) -> list[Line]:
        return [user_event(text), shown("UserMessage", content=[{"type": "text", "text": text}])]

    session = codex.session(*both("go on"), agent("a"), *both("go on"), agent("b"), *reversed(both("go on")))
    assert session.texts == [["go on", "a"], ["go on", "b"], ["go on"]]


def test_the_same_message_twice_is_two_turns(codex: CodexHome) -> None:
    assert codex.session(*user("go on"), *user("go on")).prompts == ["go on", "go on"]


def test_steering_starts_a_turn_and_a_task_does_not(codex: CodexHome) -> None:
    session = codex.session(
        started("T1"), *user("One"), agent("a"), *user("Not so"), agent("b"), complete("T1"), started("T2"), agent("c")
    )
    assert session.texts == [["One", "a"], ["Not so", "b", "c"]]
    assert session.origins == {1: "T1", 2: "T1/2"}


def test_steering_in_a_paginated_file_starts_a_turn(codex: CodexHome) -> None:
    def sent(words: str) -> list[Line]:
        return [user_item(words), shown("UserMessage", content=[{"type": "text", "text": words}])]

    session = codex.session(
        started("T1"), *sent("One"), agent("a"), *sent("Not so"), agent("b"), header=meta(history_mode="paginated")
    )
    assert session.texts == [["One", "a"], ["Not so", "b"]]
    assert session.origins == {1: "T1", 2: "T1/2"}


@pytest.mark.parametrize("kind", ["context_compacted", "entered_review_mode", "thread_goal_updated"])
def test_a_task_that_nobody_asked_for_belongs_to_the_turn_before(codex: CodexHome, kind: str) -> None:
    session = codex.session(
        started("T1"), *user("One"), complete("T1"), started("T2"), event(kind), agent("a"), complete("T2")
    )
    assert session.prompts == ["One"]
    assert session.texts[0][-1] == "a"


def test_what_is_attached_to_a_message_is_named_and_its_text_kept(codex: CodexHome) -> None:
    content = [
        {"type": "text", "text": "Compare"},
        {"type": "local_image", "path": "/k/a.png"},
        {"type": "mention", "name": "kettle", "path": "/k/kettle.rs"},
    ]
    assert codex.session(shown("UserMessage", content=content)).prompts == ["Compare"]


def test_without_events_user_items_start_turns(codex: CodexHome) -> None:
    session = codex.session(user_item(INJECTED[0]), user_item("One"), agent("a"), user_item("Two"))
    assert session.texts == [["One", "a"], ["Two"]]


@pytest.mark.parametrize("injected", INJECTED)
def test_what_was_injected_is_no_turn_and_no_title(codex: CodexHome, injected: str) -> None:
    session = codex.session(user_item(injected), user_item("\n  " + injected), user_item("One"))
    assert session.prompts == ["One"]
    assert session.facts is not None and session.facts.title == "One"


@pytest.mark.parametrize("injected", INJECTED[:-1])
def test_each_block_is_judged_alone_and_envelopes_are_taken_off_the_front(codex: CodexHome, injected: str) -> None:
    session = codex.session(user_item(injected, INJECTED[0], "One"), user_item(f"{injected}\nTwo <skill>"))
    assert [prompt.strip() for prompt in session.prompts if prompt] == ["One", "Two <skill>"]


def test_the_first_prompt_that_is_sent_again_after_an_abort_is_dropped(codex: CodexHome) -> None:
    session = codex.session(
        user_item("One"), user_item("Two"), user_item(INJECTED[4]), user_item("One"), agent("a"), user_item("One")
    )
    assert session.texts == [["One"], ["Two", "a"], ["One"]]


@pytest.mark.parametrize("is_event", [True, False])
def test_of_a_prompt_from_an_editor_only_what_follows_the_last_heading_counts(codex: CodexHome, is_event: bool) -> None:
    text = (
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n## My request for Codex:\nold\n"
        "## My request for Codex:\nFix it\nplease\n"
    )
    session = codex.session(user_event(text) if is_event else user_item(text))
    assert session.prompts == ["Fix it\nplease"]
    assert session.facts is not None and session.facts.title == "Fix it"


def test_a_prompt_that_is_but_a_picture_says_so_and_the_picture_is_dropped(codex: CodexHome) -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 1000
    image = {"type": "input_image", "image_url": picture}
    by_event = codex.session(
        item("message", role="user", content=[image]),
        user_event("", images=[picture]),
        user_event("", local_images=["/p"]),
    )
    by_item = codex.session(item("message", role="user", content=[image, {"type": "input_text", "text": ""}]))
    by_shown = codex.session(shown("UserMessage", content=[{"type": "image", "url": picture}]))
    by_skill = codex.session(shown("UserMessage", content=[{"type": "skill", "name": "kettle", "path": "/k"}]))
    assert by_event.prompts == ["[Image]", "[Image]"]
    assert by_item.prompts == by_shown.prompts == ["[Image]"]
    assert by_skill.prompts == ["[kettle]"]
    assert by_item.facts is not None and by_item.facts.title == ""


def test_a_picture_gives_no_title(codex: CodexHome) -> None:
    session = codex.session(
        user_event("", images=["data:image/png;base64,iVBORw0KGgo="]), agent("a"), user_event("One")
    )
    assert session.prompts == ["[Image]", "One"]
    assert session.facts is not None and session.facts.title == "One"


def test_what_comes_before_the_first_message_is_a_turn_of_its_own(codex: CodexHome) -> None:
    session = codex.session(agent("a"), *user("One"))
    assert session.texts == [["a"], ["One"]]
    assert session.prompts == [None, "One"]


def test_in_a_subagent_the_message_from_its_parent_starts_the_turn(codex: CodexHome) -> None:
    def message(author: str, recipient: str, text: str) -> Line:
        return item("agent_message", author=author, recipient=recipient, content=[{"type": "input_text", "text": text}])

    session = codex.session(
        message("/root", "/root/scout", "Look around"),
        user_item("Look around"),
        agent("a"),
        message("/root/scout", "/root", "Found it"),
        message("/root", "/root/scout", "gAAAAABo" * 20),
        header=spawned(),
        thread=CHILD,
    )
    assert session.texts == [["Look around", "a", "message from /root/scout to /root: Found it"]]
    assert session.prompts == ["Look around"]


def test_in_a_subagent_without_such_a_message_the_first_user_message_starts_the_turn(codex: CodexHome) -> None:
    session = codex.session(*user("Look around"), agent("a"), header=spawned(), thread=CHILD)
    assert session.texts == [["Look around", "a"]]


def test_in_a_main_thread_a_message_between_agents_is_a_notice(codex: CodexHome) -> None:
    session = codex.session(
        *user("One"), item("agent_message", author="/root/scout", recipient="/root", content="Found it")
    )
    assert session.notices == ["message from /root/scout to /root: Found it"]


def test_a_rollback_is_told_and_loses_nothing(codex: CodexHome) -> None:
    session = codex.session(*user("One"), *user("Two"), event("thread_rolled_back", num_turns=1), *user("Three"))
    assert session.texts == [
        ["One"],
        ["Two", "rolled back: the last 1 turn before this are no longer part of the thread"],
        ["Three"],
    ]


def test_a_message_ends_what_ran_before_it(codex: CodexHome) -> None:
    session = codex.session(*user("One"), call("exec_command", {"cmd": "sleep 9"}), *user("Two"))
    assert [status for _, status in session.tools] == ["failed"]


def test_a_turn_context_tells_where_a_turn_comes_from_where_no_task_does(codex: CodexHome) -> None:
    late = {"cwd": "/home/a/kettle", "turn_id": "T2"}
    session = codex.session(
        *user("One"), context("T1"), agent("a"), context("T1"), *user("Two"), {"type": "turn_context", "payload": late}
    )
    assert session.origins == {1: "T1", 2: "T2"}
