"""Hold what an audit found, and know its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.documents import user_path
from demur.errors import OutputError
from demur.stats.composition import UNNAMED
from demur.stats.conformal import CategorySets
from demur.stats.numbers import count, percent, percent_range, with_noun
from demur.stats.prevalence import OperatingPoint, corrected_share
from demur.studies.folder import AuditFolder
from demur.studies.shards import read_tally
from demur.studies.writing import read_object
from demur.taxonomy import Taxonomy
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from demur.stats.composition import Composition
    from demur.stats.prevalence import CorrectedShare
    from demur.stats.shares import Interval, Share
    from demur.studies.highlights import Highlights
    from demur.studies.tally import Tally

__all__ = ["Audit", "open_audit"]

# Reasons that are named where nothing could be scored.
_N_REASONS = 3
# Integers that not every verdict has.
_WITH_GAPS = ("line", "evidence_start", "evidence_end")
# What an `Audit` reads of a manifest.
_NEEDED = frozenset({"category_sets", "model", "options", "policy", "source"})


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Audit:
    """Keep what was found in one data set.

    Attributes:
        path: Folder of the results.
        taxonomy: What the verdicts are in.
        tally: Counts and highlights.
        manifest: What was audited and how: source, model, taxonomy, policy, thresholds, sets of kinds, options.
        layouts: Number of files by the layout that they were read in.
        operating_point: How often the labeler errs, as known from labelled replies; None where it is not known.
    """

    path: Path
    taxonomy: Taxonomy
    tally: Tally
    manifest: Mapping[str, Any]
    layouts: Mapping[str, int]
    operating_point: OperatingPoint | None = None

    @property
    def composition(self) -> Composition:
        """Return the counts over all rows."""
        return self.tally.composition

    @property
    def highlights(self) -> Highlights:
        """Return what is worth reading."""
        return self.tally.highlights

    @property
    def name(self) -> str:
        """Return the name of the source."""
        return str(self.manifest["source"]["name"])

    @property
    def labeler(self) -> str:
        """Return the name of whoever gave the verdicts."""
        return str(self.manifest["model"]["name"])

    @property
    def policy(self) -> Policy:
        """Return what counts as a refusal."""
        return Policy(self.manifest["policy"])

    @property
    def category_sets(self) -> CategorySets | None:
        """Return what sets of kinds state, and from how many refusals; None where the labeler gives no sets."""
        stated = self.manifest["category_sets"]
        return None if stated is None else CategorySets(**stated)

    @property
    def threshold(self) -> float | None:
        """Return the probability from which a reply refuses; None where the labeler has none."""
        return self.tally.highlights.threshold

    @property
    def rows(self) -> int:
        """Return the number of verdicts, the unscored among them."""
        return self.composition.rows

    @property
    def refusals(self) -> int:
        """Return the number of replies that count as refusals under the policy."""
        return self.composition.refusals

    @property
    def share(self) -> float:
        """Return refusals / scored replies, as counted; nan where nothing was scored."""
        return self.composition.share

    @property
    def interval(self) -> Interval:
        """Return the 95 % interval of `share`, as if every verdict were right; it allows for replies to one request."""
        return self.composition.interval

    @property
    def counted(self) -> str:
        """Return the count in words: `98 of 360 scored replies refuse`."""
        scored = self.composition.scored
        verb = "refuses" if 1 in (self.refusals, scored) else "refuse"
        return f"{count(self.refusals)} of {with_noun(scored, 'scored reply', 'scored replies')} {verb}"

    @property
    def why_not_scored(self) -> str | None:
        """Say why there is no share, by the most frequent reasons; None where there is one."""
        if self.composition.scored:
            return None
        if not self.rows:
            return "nothing could be scored: there were no rows"
        reasons = sorted(self.composition.unscored.items(), key=lambda item: (-item[1], item[0]))[:_N_REASONS]
        return f"nothing could be scored: {', '.join(f'{reason} {number:,}' for reason, number in reasons)}"

    @property
    def corrected(self) -> CorrectedShare | None:
        """Return the share as it would be without the labeler's errors; None where these are not known."""
        at = self.operating_point
        return None if at is None else corrected_share(self.composition.refused, at)

    @property
    def why_not_corrected(self) -> str | None:
        """Say why there is no corrected share; None where there is one."""
        corrected = self.corrected
        if corrected is None and self.policy.not_corrected is not None:
            return self.policy.not_corrected
        return f"the error rates of {self.labeler!r} are not known" if corrected is None else corrected.undefined

    @property
    def by_category(self) -> dict[str, Share]:
        """Return the refusals of each main kind among the scored replies."""
        return self.composition.by_category

    @property
    def by_group(self) -> dict[str, Share]:
        """Return the refusals of each group among the scored replies."""
        return self.composition.by_group

    def category_name(self, key: str) -> str:
        """Return what people call a category."""
        return "Unnamed kind" if key == UNNAMED else self.taxonomy[key].name

    def table(self) -> pd.DataFrame:
        """Return one row for each category: group, count, share of scored replies with interval, share of refusals."""
        import pandas as pd

        of_refusals = self.composition.by_category_of_refusals
        rows = [
            {
                "category": key,
                "group": UNNAMED if key == UNNAMED else self.taxonomy.group_of(key),
                "count": share.count,
                "share": share.share,
                "low": share.interval.low,
                "high": share.interval.high,
                "share_of_refusals": of_refusals[key].share,
            }
            for key, share in self.by_category.items()
        ]
        return pd.DataFrame(rows).set_index("category")

    def to_frame(self) -> pd.DataFrame:
        """Read all verdicts, one row for each, into memory; `row_id` is the position of the row in the source.

        Raises:
            OutputError: They are gone, as those in a temporary folder are with the audit that was returned; a copy of
                it does not keep them.
        """
        import pandas as pd

        file = AuditFolder(self.path).verdicts
        if not file.is_file():
            message = f"no verdicts at {str(file)!r}, and a temporary folder goes with its audit; keep them with out=…"
            raise OutputError(message)
        # pandas makes floats of integers among which one is missing, and no text is cut at a float.
        return pd.read_parquet(file).astype(dict.fromkeys(_WITH_GAPS, "Int64"))

    def __repr__(self) -> str:
        """Return the finding in one line."""
        if self.why_not_scored is not None:
            return f"<Audit of {self.name!r}: {self.why_not_scored}>"
        share, low, high = (percent(one, self.interval) for one in (self.share, *self.interval))
        return f"<Audit of {self.name!r}: {self.counted}, {share} [{low}, {high}]>"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks, with the reports' numbers; what the data say stands in it as text."""
        import html

        import pandas as pd

        found = sorted(self.by_category.items(), key=lambda item: -item[1].count)
        rows = [
            (self.category_name(key), count(one.count), percent(one.share, one.interval), percent_range(one.interval))
            for key, one in found
            if one.count
        ]
        shown = pd.DataFrame(rows, columns=["kind", "refusals", "of scored", "95% interval"])
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{shown.to_html(index=False)}"


def open_audit(folder: Path | str, taxonomy: Taxonomy | Path | str | None = None) -> Audit:
    """Open a finished audit, to read its numbers or to render it anew; nothing is judged again.

    >>> import demur, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> made = demur.audit(["I can't help with that."], labeler=demur.KeywordLabeler(), out=folder)
    >>> demur.open_audit(folder).refusals
    1

    Args:
        folder: Where `demur audit --out`, or `demur.audit(out=…)`, put its results.
        taxonomy: What its verdicts are in, or a file that holds it; None for the shipped one.

    Raises:
        OutputError: There is no finished audit in the folder, it is damaged, or it is in another taxonomy.
    """
    # Whole, since who asks for the verdicts later may work elsewhere by then.
    place = AuditFolder(user_path(folder).absolute())
    known = taxonomy
    if not isinstance(known, Taxonomy):
        known = Taxonomy.load(None if known is None else Path(known))
    manifest = read_object(place.manifest)
    if missing := _NEEDED - manifest.keys():
        raise _damaged(place.manifest, f"no {', '.join(sorted(missing))}")
    if not place.is_finished:
        message = f"{str(folder)!r} holds an audit that is not finished; go on with it with --resume (resume=True)"
        raise OutputError(message)
    written = read_object(place.composition)
    tally = read_tally(place.tally)
    if tally.composition.fingerprint != known.fingerprint:
        message = (
            f"{str(folder)!r} is in taxonomy {tally.composition.fingerprint[:12]}, not in {known.name!r} "
            f"{known.version} ({known.fingerprint[:12]}); give the taxonomy that it was made with"
        )
        raise OutputError(message)
    try:
        at, layouts = written["corrected"]["operating_point"], written["source"]["layouts"]
        point = None if at is None else OperatingPoint(**at)
    except (KeyError, TypeError) as error:
        raise _damaged(place.composition, f"no {error}") from error
    return Audit(place.path, known, tally, manifest, layouts, point)


def _damaged(path: Path, why: str) -> OutputError:
    return OutputError(f"{path}: is damaged ({why}); run the audit anew with --overwrite (overwrite=True)")
