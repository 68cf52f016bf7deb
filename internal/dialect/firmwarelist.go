package dialect

import "bytes"

// Rust on ESP32 prints a backtrace after "Backtrace:" or the registers of an exception, with one
// address on each line:
//
//	Backtrace:
//
//	0x42002f4c
//	0x42000b0e
//
// esp-backtrace subtracts 3 from return addresses on Xtensa, and 4 on RISC-V, even if the call
// instruction has 2 bytes. Versions before 2023 subtract nothing after an exception.
var espRust = Dialect{
	Name: "esp-backtrace", Who: "Rust on ESP32: the backtraces of esp-backtrace",
	Needs:     "--image FILE, the firmware",
	Sample:    "0x42002f4c",
	Subtracts: LessESPRust,
}

// matchESPRust matches a line with only an address, or a defmt message with an address between the
// level and the source location.
func matchESPRust(r *Reader, l *Line, _ int) bool {
	const source = "(esp_backtrace"
	b := l.Text
	at := bytes.Index(b, []byte("0x"))
	addr, end, ok := prefixedHex(b, max(at, 0))
	if !ok || end-at != len("0x12345678") {
		return false
	}
	alone := onlyBlanks(b, end) && (at == 0 || endsWith(b, at, "] "))
	if !alone && !hasAt(b, blanksAfter(b, end), source) || !r.inWindow(windowESPRust) {
		return false
	}
	l.address(addr, Adjusted)
	return true
}

// Trusted Firmware-A subtracts 4 from the return addresses in its backtraces:
//
//	BACKTRACE: START: panic
//	0: EL3: 0x401b9a0
//	1: EL3: 0x401b3c4
//	BACKTRACE: END: panic
var tfa = Dialect{
	Name: "tf-a", Who: "Trusted Firmware-A: the backtraces",
	Needs:  "--image FILE, such as bl31.elf",
	Sample: "1: EL3: 0x401b3c4",
}

func matchTFA(_ *Reader, l *Line, _ int) bool {
	b := l.Text
	at := bytes.Index(b, []byte(": 0x"))
	if at < 0 {
		return false
	}
	addr, end, ok := prefixedHex(b, at+len(": "))
	for _, level := range []string{": EL3", ": EL2", ": S-EL1"} {
		if !ok || !onlyBlanks(b, end) || !endsWith(b, at, level) {
			continue
		}
		number, from, ok := decimalBefore(b, at-len(level))
		if !ok || !standsFree(b, from) {
			return false
		}
		call := Adjusted
		if number == 0 {
			call = Exact // the function that prints the backtrace
		}
		l.address(addr, call).Number = number
		return true
	}
	return false
}
