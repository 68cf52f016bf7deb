#!/bin/sh
# Writes the recordings of the tests in integration anew: the programs in files/ come from sources in testdata, by the
# commands that the .json files list. Arguments name tests.
set -eu
cd "$(dirname "$0")/../.."
TEST_REAL=record go test -count 1 -timeout 60m -run "$(echo "${*:-.}" | tr ' ' '|')" .
