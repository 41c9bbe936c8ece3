"""The types of the columns in a call of `compact`: given, inferred from the input, or kept by an earlier call."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from compactor.api.display import StepDisplay
from compactor.core.ports import ObjectInfo
from compactor.core.text.formatting import count
from compactor.wiring.folder import (
    FolderSettings,
    check_inferable,
    checked_schema,
    inferred_schema,
    infers_types,
    keep_schema,
)
from compactor.wiring.job.app import App


@dataclass
class FolderTypes:
    """The types, which are settled once for a call; each batch of a watch has its own.

    Attributes:
        step: Shows that input is read.
    """

    folder: FolderSettings
    step: StepDisplay
    _given: bytes | None = field(default=None, init=False)
    _are_kept: bool = field(default=False, init=False)

    @property
    def need_data(self) -> bool:
        """Whether they are still to be inferred from the input."""
        return infers_types(self.folder) and not self._are_kept

    def check(self, app: App) -> None:
        """Check, before any work, that they can be used.

        Raises:
            SettingsError: The schema file has faults, or the columns of DST have other types already.
        """
        if self._are_kept:
            return
        self._given = checked_schema(self.folder, app)
        if self.need_data:
            check_inferable(self.folder, app)

    def keep(self, app: App, files: Iterable[ObjectInfo]) -> None:
        """Keep the schema file beside the state, before the settings that name it.

        Args:
            app: The components.
            files: The input, for types that are to be inferred.

        Raises:
            SettingsError: There is no record with a key, or the file of a faster call has faults.
        """
        if self._are_kept:
            return
        if self.need_data:
            with self.step("reading") as show:
                self._given = inferred_schema(
                    self.folder, app, files, lambda number: show(f"read {count(number, 'file')} for types")
                )
        if self._given is not None:
            keep_schema(self.folder, app, self._given)
        self._are_kept = True
