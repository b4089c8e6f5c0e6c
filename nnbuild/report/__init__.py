"""Reports: the same facts as text, JSON and JUnit XML."""
