package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/wording"
)

// For any kind of file that a flag names, the reason why it cannot provide debug files must be
// reported. Pipes must not be opened.
func TestPlacesInWhichNothingCanBeFound(t *testing.T) {
	dir := t.TempDir()
	plant := map[string]error{
		"pipe": syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		"link": os.Symlink("pipe", filepath.Join(dir, "link")),
		"loop": os.Symlink("loop", filepath.Join(dir, "loop")),
		"text": os.WriteFile(filepath.Join(dir, "text"), []byte("text\n"), 0o600),
		"none": os.WriteFile(filepath.Join(dir, "none"), nil, 0o600),
		"elf":  os.WriteFile(filepath.Join(dir, "elf"), []byte("\x7fELF"), 0o600),
		"zip":  os.WriteFile(filepath.Join(dir, "zip"), []byte("PK\x03\x04"), 0o600),
		"dir":  os.Mkdir(filepath.Join(dir, "dir"), 0o700),
	}
	got, want := map[string]string{}, map[string]string{}
	expect := func(flags []string, wrong string, except map[string]string) {
		for _, flag := range flags {
			for name, err := range plant {
				if err != nil {
					t.Fatal(err)
				}
				want[flag+" "+name] = wrong
				if other, ok := except[name]; ok {
					want[flag+" "+name] = other
				}
				if name == "loop" {
					want[flag+" "+name] = "too many levels of symbolic links"
				}
				got[flag+" "+name] = ""
				if err := (Place{flag, filepath.Join(dir, name)}).problem(); err != nil {
					got[flag+" "+name] = wording.Cause(err).Error()
				}
			}
		}
	}
	expect([]string{"--symbol-path", "--obj"}, "not an ELF file, a .zip file or a folder", map[string]string{"elf": "", "zip": "", "dir": ""})
	expect([]string{"--build-id-dir", "--debug-file-directory", "--sysroot", systemPlace}, "not a folder", map[string]string{"dir": ""})
	expect([]string{"--dwp"}, "not an ELF file", map[string]string{"elf": ""})
	expect([]string{"--ids-txt"}, "", map[string]string{"dir": "not a regular file", "pipe": "not a regular file", "link": "not a regular file"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("want (-), got (+):\n" + diff)
	}
	for _, name := range []string{"pipe", "link", "text"} {
		if isTree(filepath.Join(dir, name)) {
			t.Errorf("%s is taken for a folder of debug files", name)
		}
	}
}
