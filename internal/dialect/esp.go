package dialect

import "bytes"

// The panics of ESP-IDF and of Arduino on ESP32 and ESP8266:
//
//	Backtrace: 0x400d1234:0x3ffb1f40 0x400d5678:0x3ffb1f60 |<-CORRUPTED
//	abort() was called at PC 0x400d5678 on core 0
//
// In the list, a stack address follows each code address. On Xtensa, 3 has been subtracted from all
// code addresses, even from the fault's. The register PC has the fault's address unchanged. On
// RISC-V, where lists need frame pointers, nothing has been subtracted. The address in the line of
// abort is 3 too low on both machines. Dialect registers reads the registers.
var (
	esp = Dialect{
		Name: "esp-idf", Who: "ESP-IDF and Arduino: the backtraces of ESP32",
		Needs:     "--image FILE, the firmware",
		Sample:    "Backtrace: 0x400d1234:0x3ffb1f40 0x400d5678:0x3ffb1f60",
		Subtracts: LessESPIDF,
	}

	// stackWords is not part of --dialects=auto: a stack also contains return addresses of earlier
	// calls, which look like current ones.
	stackWords = Dialect{
		Name: "stack-words", Who: "firmware: the words of a dumped stack that may be return addresses, as in \"Stack memory:\" of ESP-IDF",
		Needs:    "--image FILE (the firmware) and --dialects=auto,stack-words; the names are guesses",
		Sample:   "3fc98340: 0x4200a1c4 0x00000000 0x3fc98360 0x4200a1f8",
		OnDemand: true,
	}
)

// matchESP matches a list of addresses after "Backtrace:". Its first address is at the given
// offset.
func matchESP(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !endsWith(b, blanksBefore(b, at), "Backtrace:") {
		return false
	}
	for len(l.Frames) < maxAddresses {
		addr, end, ok := prefixedHex(b, at)
		if !ok || !hasAt(b, end, ":0x") {
			break
		}
		if _, end, ok = prefixedHex(b, end+1); !ok {
			break // a reset has cut off the line
		}
		call := Adjusted
		if len(l.Frames) == 0 && r.number-r.device.at <= espRegisters {
			switch r.device.pc {
			case addr:
				call = Exact
			case addr + ESPLess:
				addr, call = addr+ESPLess, Exact
			}
		}
		f := l.address(addr, call)
		f.Number = len(l.Frames) - 1
		at = blanksAfter(b, end)
	}
	return len(l.Frames) > 0
}

const (
	ESPLess      = 3  // bytes subtracted from an address: the size of a call on Xtensa
	espRegisters = 40 // maximum lines between the register PC and the backtrace
)

func matchESPAbort(_ *Reader, l *Line, _ int) bool {
	const mark = "abort() was called at PC "
	b := l.Text
	at := bytes.Index(b, []byte(mark))
	if at < 0 {
		return false
	}
	addr, end, ok := prefixedHex(b, at+len(mark))
	if !ok || !hasAt(b, end, " on core ") {
		return false
	}
	l.address(addr, Adjusted)
	return true
}

func matchStackWords(_ *Reader, l *Line, _ int) bool {
	b := l.Text
	start := bytes.LastIndex(b, []byte(": "))
	if start < 0 {
		start = bytes.Index(b, []byte("  0x")) // from the ESP8266 SDK
	}
	if start < 8 || hexBefore(b, start) != start-8 || start > 8 && isWord(b[start-9]) {
		return false
	}
	for at := blanksAfter(b, start+1); at < len(b) && len(l.Frames) < maxAddresses; at = blanksAfter(b, at) {
		if hasAt(b, at, "0x") {
			at += len("0x")
		}
		word, end, ok := hexAt(b, at)
		if !ok || end != at+8 || isWordAt(b, end) {
			break
		}
		if at = end; word != 0 {
			l.address(word, Return).Optional = true
		}
	}
	return len(l.Frames) > 0
}
