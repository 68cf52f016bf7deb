package object

import (
	"bytes"
	"encoding/json"
)

// DebugLink returns the contents of .gnu_debuglink: the name of this file's debug file, usually
// without a directory, and its CRC-32 (IEEE). The name is not empty, but otherwise unchecked: it
// may be hostile. ok is false if the section is missing or malformed. DebugLink reads at most a few
// KiB, and keeps nothing.
func (f *File) DebugLink() (name string, crc uint32, ok bool) {
	data := f.small(".gnu_debuglink", maxLink)
	end := bytes.IndexByte(data, 0)
	if end <= 0 {
		return "", 0, false
	}
	at := alignUp(uint64(end)+1, 4)
	if at+4 > uint64(len(data)) {
		return "", 0, false
	}
	return string(data[:end]), f.u32(data[at:]), true
}

// AltLink returns the contents of .gnu_debugaltlink: the name and build ID of the supplementary
// file, made by dwz, for this file's debug information. The name is absolute, or relative to this
// file. It is not empty, but otherwise unchecked: it may be hostile. The build ID has 1 to 64
// bytes. ok is false if the section is missing or malformed.
func (f *File) AltLink() (name string, id []byte, ok bool) {
	data := f.small(".gnu_debugaltlink", maxLink)
	end := bytes.IndexByte(data, 0)
	if end <= 0 {
		return "", nil, false
	}
	id = data[end+1:]
	if len(id) == 0 || len(id) > maxID {
		return "", nil, false
	}
	return string(data[:end]), id, true
}

// A PackageNote names the package and distribution of a file. It is the JSON in a note of owner FDO
// ("Package Metadata for Executable Files", UAPI group). Missing fields are empty. The values are
// not checked: they have up to 16 KiB of any characters.
type PackageNote struct {
	Type         string `json:"type"` // "deb", "rpm", "apk", …
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`        // ID of os-release
	OSVersion    string `json:"osVersion"` // VERSION_ID of os-release
	OSCPE        string `json:"osCpe"`
	DebugInfoURL string `json:"debugInfoUrl"` // recommended debuginfod server; no request is made without consent
	AppCPE       string `json:"appCpe"`
}

const ntFDOPackaging = 0xcafe1a7e

// PackageNote returns the packaging metadata of the file. ok is false if the metadata is missing,
// is not a JSON object of strings, or has none of the fields. Like [BuildID] it reads at most 1 MiB
// of notes.
func (f *File) PackageNote() (p PackageNote, ok bool) {
	if f.closed {
		return p, false
	}
	search := noteSearch{header: &f.header, r: f.bytes(), size: f.size, budget: maxNotes, owner: "FDO\x00", kind: ntFDOPackaging, limit: maxPackageNote}
	desc, _ := search.file(f.segments, f.sections)
	// some tools pad the text with NULs
	desc = bytes.TrimRight(desc, "\x00")
	if len(desc) == 0 || json.Unmarshal(desc, &p) != nil {
		return PackageNote{}, false
	}
	return p, p != PackageNote{}
}
