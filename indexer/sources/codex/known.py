"""What is known of the format, so that what is new in it is noticed on the day it comes."""

ENVELOPE_KEYS = frozenset({"timestamp", "type", "payload", "ordinal"})

HEADER_KEYS = frozenset(
    {
        *("id", "session_id", "timestamp", "cwd", "originator", "cli_version", "source", "thread_source"),
        *("parent_thread_id", "forked_from_id", "agent_nickname", "agent_role", "agent_path", "model_provider"),
        *("base_instructions", "instructions", "dynamic_tools", "git", "history_mode", "history_base"),
        *("subagent_history_start_ordinal", "memory_mode", "context_window", "type"),
    }
)

KNOWN_VERSIONS = ("0.",)
"""How versions of the program begin whose files were seen: there is a new one every week."""

HISTORY_MODES = frozenset({"legacy", "paginated"})

ITEM_KEYS = frozenset(
    {
        *("type", "id", "role", "content", "phase", "end_turn", "metadata", "summary", "encrypted_content"),
        *("call_id", "status", "action", "name", "namespace", "arguments", "output", "input", "execution", "tools"),
        *("revised_prompt", "result", "author", "recipient", "success", "turn_id", "ghost_commit", "timestamp"),
        "internal_chat_message_metadata_passthrough",
    }
)

EVENT_KEYS = frozenset(
    {
        *("type", "id", "call_id", "turn_id", "thread_id", "item", "started_at", "started_at_ms", "completed_at"),
        *("completed_at_ms", "message", "images", "local_images", "text_elements", "client_id", "kind", "text"),
        *("phase", "command", "cwd", "parsed_cmd", "source", "interaction_input", "stdout", "stderr", "process_id"),
        *("aggregated_output", "exit_code", "duration", "duration_ms", "formatted_output", "status", "success"),
        *("changes", "auto_approved", "invocation", "result", "query", "action", "path", "revised_prompt"),
        *("saved_path", "last_agent_message", "error", "reason", "codex_error_info", "additional_details"),
        *("risk_level", "risk_score", "rationale", "review_id", "target", "user_facing_hint", "prompt"),
        *("review_output", "num_turns", "thread_name", "model_context_window", "collaboration_mode_kind"),
        *("time_to_first_token_ms", "memory_citation", "tool", "arguments", "content_items", "namespace", "callId"),
        *("turnId", "contentItems", "sender_thread_id", "receiver_thread_id", "receiver_thread_ids", "statuses"),
        *("new_thread_id", "new_agent_nickname", "new_agent_role", "receiver_agent_nickname", "model"),
        *("receiver_agent_role", "reasoning_effort", "agent_statuses", "receiver_agents", "trace_id", "item_id"),
        *("mcp_app_resource_uri", "plugin_id", "decision_source", "user_authorization", "target_item_id"),
        *("name", "role", "stream", "event_id", "occurred_at_ms", "agent_thread_id", "agent_path", "ordinal"),
    }
)

SHOWN_KEYS = EVENT_KEYS | frozenset(
    {
        *("content", "summary_text", "raw_content", "server", "review", "data", "title", "summary", "results"),
        *("command_actions", "memory_citation", "agents_states", "receiver_threads"),
    }
)

PART_TYPES = frozenset(
    {
        *("input_text", "output_text", "text", "Text", "refusal", "input_image", "image", "local_image", "skill"),
        *("mention", "encrypted_content"),
    }
)
"""Of what the content of messages and outputs is made."""
