"""Results of commands: their JSON, with its keys as attributes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

Json = Any


class Result(Mapping[str, Any]):
    """A JSON object: ``result.runtime_ps``, ``result["runtime_ps"]``, ``result.to_dict()``.

    docs/simulator.md, docs/reports.md and ``docs/schema/`` list the keys.
    """

    def __init__(self, values: dict[str, Json]) -> None:
        self._values = values

    def to_dict(self) -> dict[str, Json]:
        """The JSON, as dictionaries and lists."""
        return self._values

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self._values)
            raise AttributeError(f"no {name!r} in this result, which has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __eq__(self, other: object) -> bool:
        return self._values == (other._values if isinstance(other, Result) else other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values,)

    def __repr__(self) -> str:
        shown = [f"{key}={_short(value)}" for key, value in self._values.items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return html_table(_flat(self._values))


class Check(Result):
    """What ``vef check`` finds: ``ok``, ``problems``, and the counts of ``vef check --json``."""

    @property
    def ok(self) -> bool:
        """Whether every record replays."""
        return bool(self._values["complete"])

    def __bool__(self) -> bool:
        return self.ok


class Sweep(Result):
    """The points of a sweep, each with its settings, and its report or its error."""

    def columns(self, *keys: str) -> dict[str, list[Any]]:
        """The sweep as columns, for polars.DataFrame or pandas.DataFrame: options, and keys of the reports (default: run time, messages).

        A key with dots names a value inside: ``latency.mean_ps``. A point without a report has None, and its error in the column ``error``.
        """
        keys = keys or ("runtime_ps", "messages")
        points = self._values["points"]
        columns: dict[str, list[Any]] = {
            option: [point["settings"].get(option) for point in points] for option in self._values["options"]
        }
        for key in keys:
            columns[key] = [_inside(point.get("report"), key) for point in points]
        columns["error"] = [point.get("error") for point in points]
        return columns

    def __len__(self) -> int:
        return len(self._values["points"])

    def _repr_html_(self) -> str:
        return html_columns(self.columns())


def html_table(rows: Mapping[str, Any]) -> str:
    """Names and values as a table of two columns."""
    cells = (f"<tr><th>{_escaped(name)}</th><td>{_escaped(value)}</td></tr>" for name, value in rows.items())
    return f"<table>{''.join(cells)}</table>"


def html_columns(columns: Mapping[str, list[Any]]) -> str:
    """Columns as a table."""
    head = "".join(f"<th>{_escaped(name)}</th>" for name in columns)
    rows = ("".join(f"<td>{_escaped(value)}</td>" for value in row) for row in zip(*columns.values(), strict=True))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _inside(report: Json, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(report, dict):
            return None
        report = report.get(part)
    return report


def _flat(values: dict[str, Json], prefix: str = "") -> dict[str, Any]:
    """The numbers and short texts of a JSON object, by keys with dots."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, list):
            flat[prefix + key] = f"{len(value)} items"
        elif value is not None:
            flat[prefix + key] = value
    return flat


def _wrapped(value: Json) -> Any:
    if isinstance(value, dict):
        return Result(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _short(value: Json) -> str:
    if isinstance(value, dict):
        return "{…}"
    if isinstance(value, list):
        return f"[{len(value)} items]"
    return repr(value)


def _escaped(value: Any) -> str:
    return html.escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
