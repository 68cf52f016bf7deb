package source

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxURL bounds a link's URL, in bytes: terminals accept about 2,000.
const maxURL = 2000

// A Template makes the URLs of source lines. It is immutable: many goroutines may use it. A nil
// Template makes no URL.
type Template struct {
	parts []templatePart
	host  string // name of this machine, for {host}
}

// A templatePart is a field or, if field is empty, text.
type templatePart struct{ text, field string }

// Fields are the values for a Template. They may hold any bytes.
type Fields struct {
	Path     string // absolute path of the source file on this machine; empty: none
	Rel      string // path below a root; empty: it is below none
	Recorded string // absolute path in the debug information; empty: none
	BuildID  string // hex digits; empty: none
	Line     uint32 // 1-based; 0 if unknown
	Column   uint32 // 1-based; 0 if unknown: links go to column 1
}

var fields = []string{"path", "rel", "recorded", "build_id", "line", "column", "host"}

// namedTemplates are templates by name, from ripgrep's --hyperlink-format.
var namedTemplates = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"default":  "file://{host}{path}",
		"file":     "file://{host}{path}",
		"vscode":   "vscode://file{path}:{line}:{column}",
		"vscodium": "vscodium://file{path}:{line}:{column}",
		"emacs":    "org-protocol://open-source?url=file://{path}&line={line}&col={column}",
		"kitty":    "file://{host}{path}#{line}",
		"textmate": "txmt://open?url=file://{path}&line={line}&column={column}",
		"macvim":   "mvim://open?url=file://{path}&line={line}&column={column}",
	}
})

// forges are the sites for templates of the form NAME:OWNER/REPO@REV or NAME:URL@REV.
var forges = map[string]struct{ site, at string }{
	"github": {"https://github.com/", "/blob/{rev}/{rel}#L{line}"},
	"gitlab": {"https://gitlab.com/", "/-/blob/{rev}/{rel}#L{line}"},
	// the function repository replaces {kind} by commit or branch
	"forgejo": {"https://codeberg.org/", "/src/{kind}/{rev}/{rel}#L{line}"},
	"cgit":    {"", "/tree/{rel}?id={rev}#n{line}"},
}

// ParseTemplate returns the template that text describes. text is one of these:
//
//   - a URL with fields, such as "https://code.example/{rel}#L{line}"
//   - the name of a template: default, file, vscode, vscodium, emacs, kitty, textmate or macvim
//   - a repository: "github:OWNER/REPO@REV", or the same with gitlab or forgejo
//   - a repository by its URL, such as "cgit:URL@REV" or "gitlab:URL@REV"
//   - "debuginfod": source files of the debuginfod server whose URL is the parameter server, which
//     must not be empty
//   - "none" or "": the Template is nil
//
// The scheme of a URL must not be javascript, data or vbscript, which a page would run.
func ParseTemplate(text, server string) (*Template, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	url := text
	name, of, isForge := strings.Cut(text, ":")
	switch forge, ok := forges[name]; {
	case namedTemplates()[text] != "":
		url = namedTemplates()[text]
	case text == "debuginfod":
		if server == "" {
			return nil, errors.New("debuginfod: no server is named: see DEBUGINFOD_URLS")
		}
		url = literal(strings.TrimRight(server, "/")) + "/buildid/{build_id}/source{recorded}"
	case ok && isForge:
		var err error
		if url, err = repository(name, of, forge.site, forge.at); err != nil {
			return nil, err
		}
	}
	t := &Template{}
	if err := t.parse(url); err != nil {
		return nil, err
	}
	t.host, _ = os.Hostname()
	return t, nil
}

// literal returns text with encoded braces: braces delimit fields.
func literal(text string) string { return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(text) }

// repository returns the URL template for a repository of a forge, named by OWNER/REPO@REV or
// URL@REV.
func repository(name, of, site, at string) (string, error) {
	i := strings.LastIndexByte(of, '@')
	if i <= 0 || i == len(of)-1 {
		return "", fmt.Errorf("%s: %q is not OWNER/REPO@REV: without a revision, links lead to other lines later", name, of)
	}
	repo, rev := strings.Trim(of[:i], "/"), of[i+1:]
	switch {
	case strings.HasPrefix(repo, "https://") || strings.HasPrefix(repo, "http://"):
	case site == "":
		return "", fmt.Errorf("%s: %q is not URL@REV", name, of)
	case strings.Count(repo, "/") == 0:
		return "", fmt.Errorf("%s: %q is not OWNER/REPO@REV", name, of)
	default:
		repo = site + repo
	}
	kind := "branch"
	if len(rev) >= 7 && len(rev) <= 64 && strings.Trim(rev, "0123456789abcdef") == "" {
		kind = "commit"
	}
	at = strings.NewReplacer("{rev}", string(appendEncoded(nil, rev)), "{kind}", kind).Replace(at)
	return literal(repo) + at, nil
}

func (t *Template) parse(url string) error {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || !isScheme(scheme) {
		return fmt.Errorf("%q is not the name of a template, and does not begin with a scheme, such as https", url)
	}
	switch strings.ToLower(scheme) {
	case "javascript", "data", "vbscript":
		return fmt.Errorf("the scheme %s is refused: a page would run the link", scheme)
	}
	names := false
	for url != "" {
		text, rest, found := strings.Cut(url, "{")
		for i := range len(text) {
			if c := text[i]; c <= ' ' || c >= 0x7f || c == '}' {
				return fmt.Errorf("%q in a template: write %%%02X", c, c)
			}
		}
		if text != "" {
			t.parts = append(t.parts, templatePart{text: text})
		}
		if !found {
			break
		}
		field, after, closed := strings.Cut(rest, "}")
		if !closed || !slices.Contains(fields, field) {
			return fmt.Errorf("unknown field {%s: fields are {%s}", field, strings.Join(fields, "} {"))
		}
		names = names || field == "path" || field == "rel" || field == "recorded"
		t.parts = append(t.parts, templatePart{field: field})
		url = after
	}
	if !names {
		return errors.New("a template needs {path} or {rel}; otherwise all links would be equal")
	}
	return nil
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return s != ""
}

// Append appends the URL of a line: at most 2,000 bytes from 0x21 to 0x7e. If the line or a field
// of the template is unknown, or the URL would be longer, dst is unchanged and ok is false.
func (t *Template) Append(dst []byte, f *Fields) (_ []byte, ok bool) {
	if t == nil || f.Line == 0 {
		return dst, false
	}
	start := len(dst)
	for i := range t.parts {
		known := true
		switch p := &t.parts[i]; p.field {
		case "":
			dst = append(dst, p.text...)
		case "path":
			dst, known = appendEncoded(dst, f.Path), f.Path != ""
		case "rel":
			dst, known = appendEncoded(dst, f.Rel), f.Rel != ""
		case "recorded":
			dst, known = appendEncoded(dst, f.Recorded), f.Recorded != ""
		case "build_id":
			dst, known = appendEncoded(dst, f.BuildID), f.BuildID != ""
		case "host":
			dst = appendEncoded(dst, t.host)
		case "line":
			dst = strconv.AppendUint(dst, uint64(f.Line), 10)
		case "column":
			dst = strconv.AppendUint(dst, uint64(max(f.Column, 1)), 10)
		}
		if !known || len(dst)-start > maxURL {
			return dst[:start], false
		}
	}
	return dst, true
}

// appendEncoded appends a field's value. It percent-encodes all bytes but letters, digits and
// "-._~/:".
func appendEncoded(dst []byte, value string) []byte {
	if len(value) > maxURL { // the URL is too long then: it is not appended
		value = value[:maxURL+1]
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '/', c == ':':
			dst = append(dst, c)
		default:
			const digits = "0123456789ABCDEF"
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// urlPath returns the cleaned form of an absolute path in URLs; "" for other paths. A path of
// Windows, such as C:\a.c, becomes /C:/a.c on every system.
func urlPath(p string) string {
	if len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') {
		p = "/" + strings.ReplaceAll(p, `\`, "/")
	}
	if p == "" || p[0] != '/' {
		return ""
	}
	return path.Clean(p)
}
