#!/bin/sh
# Writes page.png, the picture in README: a screenshot of symfilter --output=html by chromium-headless-shell, and page.sha256,
# the hash of the page that it shows, which a test compares.
set -eu
cd "$(dirname "$0")/../.."
UPDATE=1 go test -count 1 -run '^TestThePictureOfThePageIsOfThisState$' ./integration
