package symbolize

// A Snippet is the source line of a Frame, with the lines around it. The zero value has no lines.
// Lines alias memory that must not be modified.
type Snippet struct {
	First uint32   // number of the first line, from 1
	Lines [][]byte // without line ends; any bytes
	// the compiler has read this file: its checksum matches, or it is embedded
	Verified bool
	Origin   string // where the file was found: "embedded", its path, or its server
}
