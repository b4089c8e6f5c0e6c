"""Reports: the same facts as text, as JSON and as JUnit XML."""

from nnbuild.report.json_report import to_json
from nnbuild.report.junit import to_junit
from nnbuild.report.text import layer_table, to_text

__all__ = ["layer_table", "to_json", "to_junit", "to_text"]
