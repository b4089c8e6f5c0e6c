"""Parts of kernels of several operations: functions, tables, overlaps, prologues, streams of rows."""
