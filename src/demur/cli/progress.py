"""Show how far a training is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from demur.model.training import Step, Validation

__all__ = ["TrainingProgress"]

# A rate is that of the last minutes: teachers answer some hundred rows at once, which can take longer than rich's 30 s.
_RATE_SECONDS = 300.0


class TrainingProgress:
    """Draw a bar of the steps while it is open, and print a line for each epoch."""

    def __init__(self, console: Console) -> None:
        """Take the console to draw on."""
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.1f} rows/s"),
            TextColumn("{task.fields[loss]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=_RATE_SECONDS,
        )
        self._task = self._progress.add_task("preparing", total=None, rate=0.0, loss="")

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the bar as it is."""
        self._progress.stop()

    def start(self, title: str) -> None:
        """Begin another training under a title."""
        self._console.print(title, markup=False, soft_wrap=True)
        self._progress.reset(self._task, total=None, description="preparing", rate=0.0, loss="")

    def on_answer(self, done: int, total: int) -> None:
        """Move the bar while teachers are asked."""
        self._move("asking teachers", done, total, n_rows=1, said="")

    def on_step(self, step: Step) -> None:
        """Move the bar."""
        self._move("training", step.done, step.total, n_rows=step.n_rows, said=f"loss {step.loss:.3f}")

    def _move(self, what: str, done: int, total: int, *, n_rows: int, said: str) -> None:
        task = self._progress.tasks[0]
        if task.description != what:
            # A rate over what went before says nothing of what comes.
            self._progress.reset(self._task, total=total)
        speed = task.speed
        self._progress.update(
            self._task,
            description=what,
            completed=done,
            total=total,
            rate=0.0 if speed is None else speed * n_rows,
            loss=said,
        )

    def on_epoch(self, found: Validation) -> None:
        """Print how the epoch did."""
        self._console.print(
            f"epoch {found.epoch}: training loss {found.training_loss:.3f}, held-out gate F1 {found.gate_f1:.3f}, "
            f"kind accuracy {found.kind_accuracy:.3f}"
        )
