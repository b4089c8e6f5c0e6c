"""Every operation a graph can hold, one file each; the meaning of a graph follows from theirs."""
