//go:build linux

package integration

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tempFolder matches the folder of a test, whose name contains a random number:
// /tmp/TestName123456/001.
var tempFolder = regexp.MustCompile(`^/(Test[^/]*?)\d+/(\d{3})`)

// folders maps a folder's name without the random number to the folder of this run. folderTests has
// the names of tests as spelled in folders.
var folders, folderTests sync.Map

// nameFolders stores the names that the folders of t and its parents have. Without these names, the
// digits at the end of a test's name would look like a part of the random number.
func nameFolders(t testing.TB) {
	for name := t.Name(); ; name = name[:strings.LastIndexByte(name, '/')] {
		folderTests.Store(strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()+,-.=@^_{}~ ", r) {
				return -1
			}
			return r
		}, name), true)
		if !strings.Contains(name, "/") {
			return
		}
	}
}

// folderName returns the folded name of the test folder at the beginning of path, and the folder.
func folderName(path string) (name, folder string) {
	m := tempFolder.FindStringSubmatch(path)
	if m == nil {
		return "", ""
	}
	base, _, _ := strings.Cut(path[1:], "/")
	for n := len(base) - 1; n >= len(m[1]); n-- {
		if _, known := folderTests.Load(base[:n]); known {
			return base[:n] + "/" + m[2], m[0]
		}
	}
	return m[1] + "/" + m[2], m[0]
}

// fold replaces the folders of tests in a text by fixed names.
func fold(s string) string {
	s = strings.ReplaceAll(s, filepath.Dir(command), "${MAIN}")
	temp := os.TempDir()
	var b strings.Builder
	for {
		i := strings.Index(s, temp+"/Test")
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+len(temp):]
		if name, folder := folderName(s); name != "" {
			folders.Store(name, temp+folder)
			b.WriteString("${" + name + "}")
			s = s[len(folder):]
		} else {
			b.WriteString(temp)
		}
	}
}

var foldedFolder = regexp.MustCompile(`\$\{(MAIN|Test[^/\n]*/\d{3})\}`)

// unfold is the inverse of fold. The folders must have appeared in an earlier command.
func unfold(s string) string {
	return foldedFolder.ReplaceAllStringFunc(s, func(name string) string {
		name = name[2 : len(name)-1]
		if name == "MAIN" {
			return filepath.Dir(command)
		}
		if path, ok := folders.Load(name); ok {
			return path.(string)
		}
		return "/no/folder/" + name
	})
}

// listFolders returns the files in the test folders that a command names or runs in.
func listFolders(cmd *exec.Cmd) map[string]fs.FileInfo {
	all := make(map[string]fs.FileInfo)
	roots := make(map[string]bool)
	temp := os.TempDir()
	main := filepath.Dir(command)
	for _, arg := range slices.Concat(cmd.Args, cmd.Env, []string{cmd.Dir}) {
		for rest := arg; ; rest = rest[1:] {
			i := strings.Index(rest, temp+"/")
			if i < 0 {
				break
			}
			rest = rest[i:]
			if folder := tempFolder.FindString(rest[len(temp):]); folder != "" {
				roots[temp+folder] = true
				// twins shared by tests
			} else if shared, ok := strings.CutPrefix(rest, main+"/"); ok {
				if name, _, isFolder := strings.Cut(shared, "/"); isFolder && name != "checkout" && name != "cache" {
					roots[filepath.Join(main, name)] = true
				}
			}
		}
	}
	for root := range roots {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					all[path] = info
				}
			}
			return nil
		})
	}
	return all
}
