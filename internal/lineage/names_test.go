package lineage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each name in the list must be recognised as a name that rotation gives to the file base. The text
// at the end of some lines is a note, such as the program that rotates.
func TestNamesOfRotatedFiles(t *testing.T) {
	for base, names := range map[string]string{
		"app.log": `
			app.log.1 app.log.10 app.log.0                       logrotate, newsyslog
			app.log.2.gz app.log.3.zst app.log-20240101.gz       compressed
			app.log-20240101 app.log-2024010115                  logrotate: dateext, hourly
			app.log-20240101-1704067200                          logrotate: dateformat with seconds
			app.log-20240101.150405 app.log_20240101_150405
			app.log.2024-01-01 app.log.2024-01-01-1              log4j
			app.log.2024-01-01T15:04:05Z app.log.2024-01-01T15-04-05.000
			app.log.20240101T150405Z app.log-2024-01-01T15:04:05+00:00
			app.log.2024-01-01_15-04-05                          Python
			app.log.1704067200 app.log.1704067200123             rotatelogs
			app.log.01-Jan-2024 app.log.2024-W05
			app.log.old app.log.old.1 app.log.OLD app.log.prev app.log.bak app.log.bak2 app.log~
			app-20240101.log app-2024-01-01.log app.2024-01-01.log app_2024-01-01.log app-01-02-2024.log
			app-2024-01-01-1.log app-2024-01-02T15-04-05.000.log lumberjack
			app-2024-01-02T15-04-05.000.log.gz
			app__2024-01-01_00-00-00.log                         PM2
			app-1704067200.log app-20240101150405.log`,
		"0.log":  "0.log.20240101-120000 0.log.20240101-120000.gz",
		"access": "access.1 access-20240101 access.old",
		".log":   ".log.1",
	} {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(name, strings.TrimSuffix(base, ".log")) || !strings.ContainsAny(name, "._~") || strings.HasSuffix(name, ":") {
				continue // the name of a program
			}
			unpacked := name
			if b := packedBase(name); b != "" {
				unpacked = b
			}
			if unpacked != base && !isRotated(base, unpacked) {
				t.Errorf("%s is not taken for a rotated %s", name, base)
			}
		}
	}
}

func TestNamesOfNeighbours(t *testing.T) {
	for _, name := range []string{
		"app.log", "app.log2", "app.log.worker2", "app.log-errors-v2.txt", "app.log_access1", "app.log.2.json",
		"app.log.pid4711", "app.log.errors", "app.log.1.idx", "app.log.json", "app.log-debug.1.txt",
		"app.log.host7", "app.log.v2", "app.log-v1.2.3", "app.log.node-3", "app.log.offset1",
		"app.log.1.offset", "app.log.lock", "app.log.sqlite3", "app.log.md5", "app.log.sha256", "app.log.t1",
		"app.log.1.2x", "app.log.x2024-01-01", "app.log-2024-report", "app.log.", "app.log.-",
		"app-2.log", "app-worker-20240101.log", "app-pid123456.log", "app-123456.log", "app-4711.log",
		"app-v2024.01.01.log", "app.1.log", "app-20241301.log", "app-2024-13-01.log", "app-99999999.log",
		"app2-20240101.log", "application.log.1", "app.logs.1", "app.log.1234567890123456789012345",
	} {
		if isRotated("app.log", name) {
			t.Errorf("%s is taken for a rotated app.log", name)
		}
	}
}

func TestSortByAge(t *testing.T) {
	for name, test := range map[string]struct {
		before string // names of older files
		files  string // name@second of the last change, oldest first
		others string // the same for other files of the folder
	}{
		"shifted":                           {"", "app.log.3@1 app.log.2@2 app.log.1@3", ""},
		"shifted, of one tick":              {"", "app.log.10@1 app.log.9@1 app.log.1@1", ""},
		"counted, of one tick":              {"app.log.3", "app.log.4@1 app.log.5@1 app.log.10@1", ""},
		"shifted after one, of one tick":    {"app.log.4", "app.log.3@1 app.log.2@1", ""},
		"counted, by the others":            {"", "app.log.4@5 app.log.5@5", "app.log.1@1 app.log.2@2 app.log.3@3"},
		"shifted, by the others":            {"", "app.log.2@5 app.log.1@5", "app.log.3@3 app.log.4@2"},
		"dated, of one tick":                {"", "app.log-20260101@1 app.log-20260102@1", ""},
		"counted within a day":              {"", "app.log-2026-01-01-9@1 app.log-2026-01-01-10@2", ""},
		"shifted while the clock went back": {"app.log.4", "app.log.3@3600 app.log.2@1 app.log.1@2", ""},
		"counted while the clock went back": {"app.log.1", "app.log.2@3600 app.log.3@1 app.log.4@2", ""},
		"a mixture":                         {"", "app.log.old@1 app.log.1@2", ""},
		"two containers":                    {"", "0.log.20260101-000001.gz@5 0.log.20260101-000002@3 0.log@6 1.log.20260101-000003@7", ""},
		"shifted, and compressed later":     {"", "app.log.2.gz@5 app.log.1@3", "app.log.3.gz@4"},
		"counted, and compressed":           {"", "app.log.8.gz@1 app.log.9.gz@2 app.log.10@2", ""},
		"counted, and one compressed":       {"", "app.log.9.gz@1 app.log.10@2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var all []File
			parse := func(text string) (files []candidate) {
				for field := range strings.FieldsSeq(text) {
					path, second, _ := strings.Cut(field, "@")
					at, err := time.ParseDuration(second + "s")
					if err != nil {
						t.Fatal(err)
					}
					path, packed := strings.CutSuffix(path, ".gz")
					f := File{Path: path, ID: ID{Ino: uint64(len(all))}, ModTime: time.Unix(0, 0).Add(at), Packed: packed}
					files = append(files, candidate{File: f})
					all = append(all, f)
				}
				return files
			}
			parse(test.others)
			want := parse(test.files)
			for i := range want {
				files := slices.Concat(want[i:], want[:i])
				sortByAge(files, strings.Fields(test.before), all)
				for k := range want {
					if files[k] != want[k] {
						t.Fatalf("rotated by %d: %s is in the place of %s", i, files[k].Path, want[k].Path)
					}
				}
			}
		})
	}
}

// A link may change its target several times between two checks. AddBetween must then add the files
// whose numbers are between those of the two targets. It must add none if the targets' names differ
// in more than numbers.
func TestFilesBetweenTargetsOfALink(t *testing.T) {
	names := Names{"other-2.log", "run-1.log", "run-10.log", "run-11.log", "run-2.log", "run-2.txt", "run-3.log", "run-x.log"}
	look := func(path string) (File, error) { return File{Path: path}, nil }
	for old, want := range map[string]string{"run-1.log": "/run-10.log /run-2.log /run-3.log", "other-2.log": ""} {
		var f Family
		f.AddBetween("/"+old, "/run-11.log", names, look)
		var got []string
		for _, c := range f.Files {
			got = append(got, c.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("after %s: got %q, want %q", old, got, want)
		}
	}
}

func TestNamesOfArchives(t *testing.T) {
	for _, name := range []string{"app.log.gz", "/var/log/APP.LOG.GZ", "app.log.1.xz", "app.zst", "app.log.bz2", "app.log.gz.1", "app.gz.log.gz", "app.log.gz-20261120"} {
		if !IsArchive(name) {
			t.Errorf("%s is not taken for an archive", name)
		}
	}
	for _, name := range []string{"app.log", "app.log.1", ".gz", "gz", "app.gz.log", "app.log.gz/app.log", "app.log~", "app.tmp", "app.gzip.txt"} {
		if IsArchive(name) {
			t.Errorf("%s is taken for an archive", name)
		}
	}
}

func TestNamesThatBeginAlike(t *testing.T) {
	var names Names
	for i := range 200 {
		names = append(names, fmt.Sprintf("%03d", i))
		if got := len(names.beginning("00")); got != min(i+1, 10) || len(names.beginning("x")) > 0 {
			t.Fatalf("%d names of %d", got, i+1)
		}
	}
}
