package report

// A RawFrame is a frame of a stack in a report. In the zero value nothing is known.
type RawFrame struct {
	// Addr is the address in the process: of the instruction if Exact is set, otherwise one byte
	// before the return address of a call.
	Addr  uint64
	Exact bool

	Object     string // path of the object file, empty if the report has none
	Func, File string // empty if the report has none
	Line       uint64 // 0 if the report has none
}
