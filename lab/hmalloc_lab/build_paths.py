"""Where the launcher has put the native parts."""

from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]  # where the tools run from the source tree


@dataclass(frozen=True)
class BuildPaths:
    library: Path | None   # libhmalloc.so, or libhmalloc.so.0 where it is installed
    measurer: Path | None  # hmalloc-measure; the other natives lie beside it

    @property
    def natives(self) -> Path:
        return self.measurer.parent

    @property
    def example(self) -> Path:
        return self.natives / "hmalloc-pipeline"

    @property
    def workloads(self) -> Path:
        return self.natives / "bench"

    @property
    def baselines(self) -> dict[str, Path]:
        """The papers' allocators by name, as far as they are built."""
        found = (self.natives / "baselines").glob("lib*.so") if self.measurer else ()
        return dict(sorted((library.stem.removeprefix("lib"), library) for library in found))

    @property
    def peers(self) -> dict[str, Path]:
        """What `hmalloc bench peers` has built, by name."""
        found = self.state.glob("peers/*/lib*.so") if self.measurer else ()
        return dict(sorted((path.parent.name, path) for path in found if path.name == f"lib{path.parent.name}.so"))

    @property
    def state(self) -> Path:
        """Where measurements, traces and peers are kept."""
        return self.natives.parent
