package doctor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/symbolize"
)

// imageWord returns a value of --image for the candidate of u, quoted for a shell.
func imageWord(u symbolize.Unresolved) string {
	word := u.Candidate
	if folder, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(folder, word); err == nil && filepath.IsLocal(short) {
			word = short
		}
	}
	if name := nameForImage(u); name != "" && name != path.Base(u.Candidate) {
		word = name + "=" + word
	}
	if u.Base != 0 {
		word += fmt.Sprintf("@0x%x", u.Base)
	}
	return shellWord(word)
}

// nameForImage returns the name of a module for --image, or "".
func nameForImage(u symbolize.Unresolved) string {
	switch {
	case u.Name == "":
		return ""
	case strings.HasPrefix(u.Name, "/"):
		return path.Base(u.Name)
	}
	return judge.ProgramName(u.Name)
}

func shellWord(word string) string {
	const plain = "%+,-./:=@_"
	special := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(plain, r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// unusedImages returns the files of --image that no frame used, each as a part of a sentence.
// modules are the unresolved modules.
func (r *remedier) unusedImages(modules []symbolize.Unresolved) (all []string) {
	var names []string // module names that --image can refer to
	for _, u := range modules {
		if name := nameForImage(u); name != "" && u.ID.IsZero() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, m := range r.s.Images {
		if r.taken[m.Path] {
			continue
		}
		word, id := m.Word, fileID(m.Path)
		switch {
		case r.asked(id):
			continue
		case len(names) == 0 && id.IsZero():
			all = append(all, "--image "+shellWord(word)+" has no build ID, and the modules in the log are found by build ID")
			continue
		case len(names) == 0:
			all = append(all, "--image "+shellWord(word)+" has build ID "+id.String()+", which no module in the log has")
			continue
		}
		file := word
		if m.Name != "" {
			file = strings.TrimPrefix(word, m.Name+"=")
		}
		all = append(all, fmt.Sprintf("no frame used --image %s: no module in the log has this name; write --image %s",
			shellWord(word), imageNamed(names, m.Path, file)))
	}
	return all
}

// imageNamed returns a value of --image, NAME=file, for the file at path. file is the path as the
// value spells it. NAME is the element of names that equals the file's name without its last
// extensions, or else the only element. Otherwise the user must fill in NAME.
func imageNamed(names []string, path, file string) string {
	base := filepath.Base(path)
	for stem := base; ; {
		i := strings.LastIndexByte(stem, '.')
		if i <= 0 {
			break
		}
		if stem = stem[:i]; slices.Contains(names, stem) {
			return shellWord(stem + "=" + file)
		}
	}
	if len(names) == 1 {
		return shellWord(names[0] + "=" + file)
	}
	return shellWord("NAME="+file) + ", where NAME is the module's name in the log"
}

func fileID(path string) buildid.ID {
	files := access.BuildID(nil).(interface {
		OpenUnpacked(path, where string) (*buildid.File, error)
	})
	file, err := files.OpenUnpacked(path, "--image")
	if err != nil {
		return buildid.ID{}
	}
	defer file.Close()
	id, _ := buildid.Read(file, file.Size()) // zero if it has no build ID
	return id
}
