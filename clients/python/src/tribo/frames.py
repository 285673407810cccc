"""Tables of answers: pandas data frames, if pandas is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def dataframe(columns: Mapping[str, Any], index: Any = None) -> Any:
    """A `pandas.DataFrame` of equally long columns."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas: pip install 'tribo[pandas]'") from error
    return pandas.DataFrame(dict(columns), index=index)
