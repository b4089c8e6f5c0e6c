"""Reports: the same facts as text, JSON and JUnit XML."""

from nnbuild.report.json_report import profile_object, to_json
from nnbuild.report.junit import to_junit
from nnbuild.report.text import layer_table, profile_text, to_text

__all__ = ["layer_table", "profile_object", "profile_text", "to_json", "to_junit", "to_text"]
