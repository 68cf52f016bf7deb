package housetest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// byTag lists the images that may be named without a digest, with the folder of the files that name
// them. SECURITY.md, What remains, has the reasons.
var byTag = map[string]string{
	"golang:1.26.8-bookworm":               ".github/workflows",
	"gcr.io/oss-fuzz-base/base-builder-go": "scripts/oss-fuzz",
}

var (
	named = regexp.MustCompile(`(?m)^\s*(?:- )?(FROM|uses:|container:|image:) +(\S+)`)
	fixed = regexp.MustCompile(`^scratch$|@sha256:[0-9a-f]{64}$|@[0-9a-f]{40}$`)
)

func TestNoImageChangesUnderItsName(t *testing.T) {
	checked := 0
	for _, name := range committed(t) {
		if path.Dir(name) != ".github/workflows" && path.Base(name) != "Dockerfile" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(string(read(t, name)), -1) {
			checked++
			if !fixed.MatchString(m[2]) && byTag[m[2]] != path.Dir(name) {
				t.Errorf("%s: %s %s: name it by its digest or commit", name, m[1], m[2])
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d images were found", checked)
	}
	for image := range byTag {
		if !strings.Contains(string(read(t, "SECURITY.md")), "`"+image+"`") {
			t.Errorf("SECURITY.md does not name %s", image)
		}
	}
}
