"""Names from outside are safe to show, and links in the input lead nowhere else."""

from tests.guards.guard import Guard

_HOSTILE = "tests/end_to_end/test_hostile_names.py"
_SAFE_TEXT = "tests/unit/core/test_safe_text.py"
_LINKS = "tests/contract/test_local_links.py"
_CLOSED = "tests/unit/cli/test_cli_closed_streams.py"

NAMES = (
    Guard(
        "what commands print is escaped",
        "cli/ui/terminal.py",
        '    text = mark + "\\n".join(map(visible, lines))\n',
        '    text = mark + "\\n".join(lines)\n',
        (_HOSTILE,),
    ),
    Guard(
        "JSON is escaped, too",
        "cli/ui/output.py",
        "    return visible_json(text)\n",
        "    return text\n",
        (_HOSTILE,),
    ),
    Guard(
        "the text log is escaped",
        "telemetry/logs.py",
        '        line = visible(" ".join(',
        '        line = str(" ".join(',
        ("tests/unit/telemetry/test_logs.py",),
    ),
    Guard(
        "the status screen is escaped before it is divided into lines",
        "cli/ui/status/screen.py",
        "textwrap.wrap(visible(text), width",
        "textwrap.wrap(text, width",
        ("tests/unit/cli/test_status_screen.py",),
    ),
    Guard(
        "the console is escaped",
        "cli/ui/console.py",
        'text = "\\n".join(map(visible, segment.text.split("\\n")))',
        "text = segment.text",
        ("tests/unit/cli/test_status_screen.py",),
    ),
    Guard(
        "click's own messages are escaped",
        "cli/entry.py",
        "        exc.message = visible(exc.message)",
        "        exc.message = str(exc.message)",
        (_HOSTILE,),
    ),
    Guard(
        "a suggested command is quoted",
        "core/text/safe_text.py",
        "        return shlex.quote(word)\n",
        "        return word\n",
        (_SAFE_TEXT,),
    ),
    Guard(
        "closed streams are replaced before anything else is opened",
        "cli/entry.py",
        "    open_standard_streams()\n",
        "",
        (_CLOSED,),
    ),
)

LINKS = (
    Guard(
        "no folder on the way is a link",
        "adapters/local/beneath.py",
        "at = enter(name, at, os.O_NOFOLLOW)",
        "at = enter(name, at, 0)",
        (_LINKS,),
    ),
    Guard(
        "the file itself is no link",
        "adapters/local/durable.py",
        "(0 if at is None else os.O_NOFOLLOW)",
        "0",
        (_LINKS,),
    ),
    Guard(
        "a link stays within the allowed folders",
        "adapters/local/beneath.py",
        "        if root is None:\n",
        '        root = root or "/"\n        if root is None:\n',
        (_LINKS,),
    ),
    Guard(
        "the job's store knows the allowed folders",
        "wiring/components.py",
        "StoreSpec.of(settings.aws, settings.input.allowed_prefixes, settings.paths.state)",
        "StoreSpec.of(settings.aws, (), settings.paths.state)",
        ("tests/unit/cli/test_cli_compact.py",),
    ),
)
