package startup

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Version returns the module's version, with the commit if the toolchain recorded one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if commit := setting("vcs.revision"); len(commit) >= 12 && !strings.Contains(v, commit[:12]) {
		v += " " + commit[:12]
	}
	if setting("vcs.modified") == "true" {
		v += " (modified)"
	}
	return v + " " + info.GoVersion
}

// setting returns a setting of the build that the toolchain recorded.
func setting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// Release returns the first word of the version. The rest does not fit into the foot of a manual
// page.
func Release() string {
	word, _, _ := strings.Cut(Version(), " ")
	return word
}

// BuiltAt returns the date of a reproducible build: SOURCE_DATE_EPOCH, or the date of the commit,
// or "".
func BuiltAt() string {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	date, _, _ := strings.Cut(setting("vcs.time"), "T")
	return date
}
