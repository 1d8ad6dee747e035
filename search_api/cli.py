"""The command line: a thin door to the same calls as HTTP, with the arguments' names as options.

Exit codes: 0 found or read, 1 nothing found, 2 an error (on standard error), 130 interrupted. What only
a server or a progress bar needs is imported where it is used, so that a search starts quickly.
"""

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, get_args

import click
import orjson
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from schemas.errors import Internal, InvalidArgument, TurndexError
from schemas.requests import ReadRequest, Request, SearchRequest, SessionsRequest
from schemas.settings import Settings, absolute, load_settings
from schemas.texts import counted
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.render import Answer, error_line, json_form, text_form
from search_api.terminal import has_colour, highlighted, visible, write_json, write_note, write_text
from search_api.version import VERSION
from search_api.write_side import bring_up_to_date

FOUND, NOTHING_FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130

_log = logging.getLogger(__name__)

_Function = Callable[..., Any]


class _Turndex(click.Group):
    """The commands; every way to fail ends here, in one line on standard error and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        os.umask(0o077)  # whatever is written, also by Tantivy, is the user's alone
        try:
            code = super().main(args, "turndex", complete_var, standalone_mode=False, **extra)
        except click.Abort:
            code = INTERRUPTED
        except click.ClickException as error:
            write_note(error_line(InvalidArgument("usage", _usage(error))))
            code = FAILED
        except TurndexError as error:
            write_note(error_line(error))
            code = FAILED
        except Exception as error:  # noqa: BLE001  said below, and by the exit code
            # A fault of ours must not look like "nothing found", which is what Python's own exit code would say.
            _log.exception("turndex failed")
            write_note(error_line(Internal(f"a fault of ours ({type(error).__name__}), described above")))
            code = FAILED
        sys.exit(code)


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{error.format_message().rstrip('.')}; see {context.command_path if context else 'turndex'} --help"


@click.group(
    cls=_Turndex,
    no_args_is_help=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": lambda name: name.replace("_", "-"),  # --max_chars, as the argument is called
    },
)
@click.version_option(VERSION, prog_name="turndex", message="%(prog)s %(version)s")
def main() -> None:
    """Search and read the transcripts of coding agents while they are being written.

    A session is named by its reference (#43, #43:5-7, name#43), its id, its handle or its title; the #
    may be left out. A call is about the project around the working directory unless --project says
    otherwise; --project '*' is every open project.
    """


@dataclass(frozen=True, slots=True)
class Load:
    """Loads the settings as the options of a command say; called with flags of the command's own."""

    config_file: Path | None
    data_dir: str | None
    roots: Sequence[str]

    def __call__(self, more: Mapping[str, Any] | None = None) -> Settings:
        flags: dict[str, Any] = {}
        if self.data_dir is not None:
            flags["data_dir"] = self.data_dir
        if self.roots:
            flags["roots"] = list(self.roots)
        return load_settings(self.config_file, {**flags, **(more or {})})

    @property
    def words(self) -> list[str]:
        """These options again, for another process in another directory."""
        words = [] if self.config_file is None else ["--config", str(absolute(self.config_file))]
        # Always named: a relative one may stand in the environment.
        words += ["--data-dir", str(self().data_dir)]
        for root in self.roots:
            words += ["--root", str(absolute(Path(root)))]
        return words


def settings_options(command: _Function) -> _Function:
    """Options that every command takes; the command gets `settings`, and further flags in `flags` count."""

    @functools.wraps(command)
    def with_settings(config_file: Path | None, data_dir: str | None, roots: Sequence[str], **options: Any) -> Any:
        return command(load=Load(config_file, data_dir, roots), **options)

    path = click.Path(path_type=Path)
    for option in (
        click.option("--root", "roots", multiple=True, metavar="DIR", help="Another folder of transcripts."),
        click.option("--data-dir", "data_dir", metavar="DIR", help="Where store and index lie."),
        click.option("--config", "config_file", type=path, metavar="FILE", help="The settings file."),
    ):
        option(with_settings)
    return with_settings


def json_option(command: _Function) -> _Function:
    return click.option("--json", "is_json", is_flag=True, help="Answer in the JSON form.")(command)


def argument_options(model: type[Request], positional: str | None = None) -> Callable[[_Function], _Function]:
    """An option for each argument of a call; the command gets those that were given as `words`."""
    names = [name for name in model.argument_names() if name != positional]

    def decorate(command: _Function) -> _Function:
        @functools.wraps(command)
        def with_words(**options: Any) -> Any:
            words = {name: _words(value) for name in names if (value := options.pop(name))}
            if "project" in words:
                words["project"] = [_as_path(project) for project in words["project"]]
            if positional is not None:
                words[positional] = [options.pop(positional)]
            return command(words=words, **options)

        for name in reversed(names):
            field = model.model_fields[name]
            option = f"--{name.replace('_', '-')}"
            if field.annotation is bool:
                decorator = click.option(option, name, is_flag=True, help=field.description)
            else:
                decorator = click.option(option, name, multiple=True, metavar=_values(field), help=_help(field))
            decorator(with_words)
        return with_words

    return decorate


def _values(field: FieldInfo) -> str:
    """What an option takes: its choices where it has some."""
    choices = _choices(field.annotation)
    return "[" + "|".join(choices) + "]" if choices else "NUMBER" if field.annotation is int else "VALUE"


def _choices(annotation: Any) -> list[str]:
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return list(annotation)
    choices: list[str] = []
    for part in get_args(annotation):
        choices += [part] if isinstance(part, str) else _choices(part)
    return choices


def _help(field: FieldInfo) -> str:
    default = field.default
    return f"{field.description}{'' if default in (None, [], PydanticUndefined) else f' Default: {default}.'}"


def _words(value: bool | Sequence[str]) -> Sequence[str]:
    return ["true"] if isinstance(value, bool) else value


def _as_path(project: str) -> str:
    """A project's path as the call takes it: absolute, while a name stays a name."""
    is_path = project in (".", "..") or "/" in project
    return str(absolute(Path(project))) if is_path else project


Words = Mapping[str, Sequence[str]]


@main.command()
@click.argument("query")
@argument_options(SearchRequest, "query")
@json_option
@settings_options
def search(load: Load, words: Words, is_json: bool) -> int:
    """Where was this said? Finds QUERY anywhere in a line, ignoring case.

    Put -- before a query that starts with a dash.
    """
    request = SearchRequest.from_strings(words)
    with _opened(load()) as archive:
        answer = archive.search(request, _caller(archive, request.project))
    if is_json:
        write_json(json_form(answer))
    else:
        # Hit lines have no control characters; those of the highlights are ours.
        write_text(text_form(answer, highlighted if has_colour() else None))
    return FOUND if answer.hits else NOTHING_FOUND


@main.command()
@click.argument("session", metavar="REF")
@argument_options(ReadRequest, "session")
@json_option
@settings_options
def read(load: Load, words: Words, is_json: bool) -> int:
    """What was said there? Reads turns of the session REF, the last three by default."""
    request = ReadRequest.from_strings(words)
    with _opened(load()) as archive:
        answer = archive.read(request, _caller(archive, request.project))
    _write(answer, is_json=is_json)
    return FOUND


@main.command()
@argument_options(SessionsRequest)
@json_option
@settings_options
def sessions(load: Load, words: Words, is_json: bool) -> int:
    """Which sessions are there? Lists them, the last used first."""
    request = SessionsRequest.from_strings(words)
    with _opened(load()) as archive:
        answer = archive.sessions(request, _caller(archive, request.project))
    _write(answer, is_json=is_json)
    return FOUND if answer.sessions else NOTHING_FOUND


@main.command()
@json_option
@settings_options
def projects(load: Load, is_json: bool) -> int:
    """Which projects are there?"""
    with _opened(load()) as archive:
        answer = archive.projects()
    _write(answer, is_json=is_json)
    return FOUND if answer.projects else NOTHING_FOUND


@main.command()
@json_option
@settings_options
def status(load: Load, is_json: bool) -> int:
    """How is the archive? Asks the running server, or else looks into the data directory."""
    from search_api.address import served_status

    settings = load()
    form = served_status(settings.data_dir, settings.server.token, "json" if is_json else "text")
    if form is None:
        with closing(Archive.open(settings)) as archive:
            _write(archive.status(), is_json=is_json)
    elif is_json:
        write_json(form)
    else:
        write_text(visible(form.decode().removesuffix("\n")))
    return FOUND


@main.command()
@settings_options
def doctor(load: Load) -> int:
    """Is everything in order? Checks settings, data directory, store, index and sources."""
    from search_api.doctor import findings

    are_fine = True
    for finding in findings(load()):
        write_text(visible(str(finding)))
        are_fine = are_fine and finding.is_fine
    return FOUND if are_fine else FAILED


@main.command()
@json_option
@settings_options
def index(load: Load, is_json: bool) -> int:
    """Bring the index up to date and exit."""
    from search_api.progress import shown_progress
    from search_api.write_side import index_once

    settings = load()
    with shown_progress() as progress:
        index_once(settings, progress)
    with closing(Archive.open(settings)) as archive:
        _write(archive.status(), is_json=is_json)
    return FOUND


@main.command()
@click.argument("sessions", metavar="[REF]...", nargs=-1)
@click.option("--deleted-before", metavar="AGE", help="Those too whose files have been gone for longer: 90d, a date.")
@click.option("--project", metavar="VALUE", help="What the references are about, and --deleted-before.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@settings_options
def forget(
    load: Load, sessions: Sequence[str], deleted_before: str | None, project: str | None, yes: bool, is_json: bool
) -> int:
    """Remove sessions for good; ends when no file of the data directory holds their text any more.

    A session goes with all that it started, its subagents and theirs, whatever has become of their files.
    A transcript that is still there stays where it is, and is not read again.
    """
    from search_api.forgetting import told_beforehand
    from search_api.write_side import forget

    if not sessions and deleted_before is None:
        raise click.UsageError("name a session, or use --deleted-before")
    settings = load()
    project = None if project is None else _as_path(project)
    with _opened(settings) as archive:
        doomed = archive.sessions_to_forget(sessions, deleted_before, project, _caller(archive, project))
    for line in told_beforehand(doomed):
        write_note(line)
    if not doomed:
        return NOTHING_FOUND
    if not yes and sys.stdin.isatty():
        click.confirm("forget them for good?", abort=True, err=True)
    forgotten = forget(settings, [one.session for one in doomed], lambda says: write_note(f"… {says}"))
    if is_json:
        write_json(orjson.dumps(forgotten.model_dump()))
    else:
        write_text(f"forgotten: {counted(forgotten.sessions, 'session')}, {counted(forgotten.turns, 'turn')}")
    return FOUND


@main.command()
@click.option("--host", metavar="ADDRESS", help="The address to bind; one that is not loopback needs a token.")
@click.option("--port", type=int, metavar="PORT", help="The port; 0 takes any free one.")
@click.option("--no-discover", is_flag=True, help="Index only what --root and the settings file name.")
@click.option("--demo", is_flag=True, help="Serve a small invented archive from a temporary folder.")
@click.option("--on-demand", is_flag=True, help="End when nobody calls for a while, or another server is started.")
@settings_options
def serve(load: Load, host: str | None, port: int | None, no_discover: bool, demo: bool, on_demand: bool) -> int:
    """Index while transcripts are being written, and answer over HTTP and MCP, until interrupted."""
    from search_api.demo import demo_archive
    from search_api.serving import serve

    server = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    flags: dict[str, Any] = {"server": server} if server else {}
    if no_discover:
        flags["discover"] = False
    settings = load(flags)
    if demo:
        with demo_archive(settings) as demo_settings:
            write_note(f"to ask the demo on the command line: turndex search --data-dir {demo_settings.data_dir} …")
            serve(demo_settings)
    else:
        serve(settings, is_on_demand=on_demand)
    return FOUND


@main.command()
@click.option("--project", metavar="PATH|NAME", help="What calls are about; '*' is every open project.")
@click.option("--session", metavar="ID", help="The id of the session that the client is.")
@settings_options
def mcp(load: Load, project: str | None, session: str | None) -> int:
    """Speak MCP on standard input and output, for clients that start a program.

    Uses the running server, or starts one that ends by itself. Calls are about the project around
    CLAUDE_PROJECT_DIR, or around the working directory, unless --project says otherwise.
    """
    from search_api.mcp_stdio import place_of, serve_stdio

    place = place_of(None if project is None else _as_path(project), session)
    serve_stdio(load(), load.words, place)
    return FOUND


@contextmanager
def _opened(settings: Settings) -> Iterator[Archive]:
    """The archive, as fresh as a second allows; standard error says where that was not enough."""
    how_old = bring_up_to_date(settings)
    if how_old is not None:
        write_note(f"… {how_old}")
    with closing(Archive.open(settings)) as archive:
        yield archive


def _caller(archive: Archive, project: str | None) -> Caller:
    """Who calls: without `--project`, the project around the working directory, if that still exists."""
    if project is not None:
        return Caller()
    try:
        return Caller(archive.enclosing_project(str(Path.cwd())))
    except FileNotFoundError:
        return Caller()


def _write(answer: Answer, *, is_json: bool) -> None:
    if is_json:
        write_json(json_form(answer))
    else:
        write_text(visible(text_form(answer)))
