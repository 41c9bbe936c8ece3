"""The doctor finds what it checks for and harms nothing, and `init` overwrites no settings file."""

from tests.guards.guard import Guard

_DOCTOR = "tests/unit/ops/doctor/test_doctor_checks.py"

DOCTOR = (
    Guard(
        "a store that lets a second writer through is found",
        "ops/doctor/rights.py",
        'return _NOT_EXCLUSIVE if store.create(uri, b"second") else ""',
        'store.create(uri, b"second")\n    return ""',
        (_DOCTOR,),
    ),
    Guard(
        "a probe is not a manifest",
        "core/layout.py",
        'return f"{folder(place)}_doctor/probe/{name}/{KEEP_MARKER}"',
        'return f"{folder(place)}_doctor-{name}"',
        (_DOCTOR,),
    ),
    Guard(
        "what needs a failed check is skipped",
        "ops/doctor/runner.py",
        "if root is not None:",
        "if False:",
        (_DOCTOR,),
    ),
    Guard(
        "a settings file is not overwritten",
        "cli/commands/init.py",
        "if path.exists() and not force:",
        "if False:",
        ("tests/unit/cli/test_cli_init.py",),
    ),
)
