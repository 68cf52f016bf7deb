package input

import (
	"bytes"
	"encoding/json"
)

// Fields of systemd-coredump in a journal that name the files of the frames in MESSAGE.
const (
	coredumpProgram  = "COREDUMP_EXE"          // path of the program
	coredumpPackages = "COREDUMP_PACKAGE_JSON" // modules with their build IDs
)

// learnField gives the filter the program or the modules in a field of systemd-coredump.
func (e *Envelope) learnField(name string, value []byte) {
	switch name {
	case coredumpProgram:
		e.f.AddProgram(string(value))
	case coredumpPackages:
		if len(value) <= maxLine {
			e.f.AddPackages(value)
		}
	}
}

// learnLine is learnField for a line of journalctl -o json.
func (e *Envelope) learnLine(line []byte) {
	if !bytes.Contains(line, []byte(`"COREDUMP_`)) {
		return
	}
	var entry struct {
		Program  string `json:"COREDUMP_EXE"`
		Packages string `json:"COREDUMP_PACKAGE_JSON"`
	}
	json.Unmarshal(line, &entry) // long fields are null, and binary fields are arrays
	e.learnField(coredumpProgram, []byte(entry.Program))
	e.learnField(coredumpPackages, []byte(entry.Packages))
}
