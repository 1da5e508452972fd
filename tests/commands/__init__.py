"""Tests of the commands: a package, because some share their names with tests of the modules."""
