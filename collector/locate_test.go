package collector

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A gateway names the frames that an edge has located, each record by itself. The result must equal
// the output of a single processor that resolves, also for single addresses of code and data.
func TestLocateThenName(t *testing.T) {
	for _, name := range logs {
		lines := linesOf(t, name)
		whole, want := start(t, testConfig(), nil)
		consume(t, whole, batchOf("a", lines...))
		edgeConfig := testConfig()
		edgeConfig.Mode = modeLocate
		edge, located := start(t, edgeConfig, nil)
		consume(t, edge, batchOf("a", lines...))
		gateway, named := start(t, testConfig(), nil)
		if name == "crash.log" {
			if got := textOf(located); !strings.Contains(got, "(libledger.so+0x1917) (BuildId: eecd138796b4297ca7ee7bb08854e1173fee4bff)\n") || strings.Contains(got, "{{{bt") {
				t.Errorf("the edge:\n%s", got)
			}
			// no two records share a context, as with any replica
			for i, record := range recordsOf(located) {
				consume(t, gateway, batchOf(string(rune('a'+i)), record.Body().Str()))
			}
		} else {
			for _, ld := range located.AllLogs() {
				consume(t, gateway, ld)
			}
		}
		if diff := cmp.Diff(textOf(want), textOf(named)); diff != "" {
			t.Errorf("%s (-one processor +edge and gateway):\n%s", name, diff)
		}
	}
}

// All unnamed addresses of a record must be counted, even if several records are filtered as one
// log. The count must replace the count of an earlier processor.
func TestUnresolvedAddressesOfARecordAreCounted(t *testing.T) {
	const frame = "{{{bt:3:0x00007ffff7df324a:ra}}}" // in a file without a debug file
	lines := linesOf(t, "crash.log")
	// with the second text, the records are filtered as one log
	for _, first := range []string{"plain", "x 0x1 y"} {
		p, sink := start(t, testConfig(), nil)
		ld := batchOf("a", append([]string{first}, append(lines, frame+"\n"+frame)...)...)
		records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		records.At(records.Len()-1).Attributes().PutInt(unresolvedAttribute, 7)
		consume(t, p, ld)
		all := recordsOf(sink)
		if got := get(all[len(all)-1].Attributes(), unresolvedAttribute); got != "2" {
			t.Errorf("after %q: %q, want 2", first, got)
		}
	}
}

// symfilter.frames must have the frames of the text, and also the addresses without a name.
func TestFrames(t *testing.T) {
	c := testConfig()
	c.Frames = true
	lines := linesOf(t, "crash.log")
	for _, together := range []bool{true, false} {
		p, sink := start(t, c, nil)
		ld := batchOf("a", lines...)
		if together { // a line with an address makes the processor filter the records as one log
			ld = batchOf("a", append([]string{"x 0x1 y"}, lines...)...)
		}
		consume(t, p, ld)
		var got []any
		for _, lr := range recordsOf(sink) {
			if v, ok := lr.Attributes().Get(framesAttribute); ok {
				got = append(got, v.AsRaw())
			}
			want := map[bool]string{true: "1"}[strings.Contains(lr.Body().Str(), "(libc.so.6+")]
			if got := get(lr.Attributes(), unresolvedAttribute); got != want {
				t.Errorf("%s is %q for %q, want %q", unresolvedAttribute, got, lr.Body().Str(), want)
			}
		}
		const ledger = "eecd138796b4297ca7ee7bb08854e1173fee4bff"
		want := []any{map[string]any{
			"tag": "bt", "frame": int64(0), "address": "0x7ffff7fbd917", "lookup": "0x7ffff7fbd917", "module": "libledger.so", "build_id": ledger, "offset": "0x1917",
			"frames": []any{
				map[string]any{"function": "Pool<ledger::Order, 64ul>::next(unsigned long) const", "linkage": "_ZNK4PoolIN6ledger5OrderELm64EE4nextEm", "file": "/src/inventory/pool.h", "line": int64(33), "column": int64(5), "inlined": true},
				map[string]any{"function": "long ledger::(anonymous namespace)::sum<Pool<ledger::Order, 64ul>>(Pool<ledger::Order, 64ul> const&, unsigned int)", "linkage": "_ZN6ledger12_GLOBAL__N_13sumI4PoolINS_5OrderELm64EEEElRKT_j", "file": "/src/inventory/ledger.cc", "line": int64(13), "column": int64(32), "inlined": true},
				map[string]any{"function": "ledger::Book::total(unsigned int) const", "linkage": "_ZNK6ledger4Book5totalEj", "file": "/src/inventory/ledger.cc", "line": int64(27), "column": int64(16), "inlined": false},
			},
		}}
		if diff := cmp.Diff(want, got[1]); diff != "" {
			t.Errorf("together %t (-want +got):\n%s", together, diff)
		}
		open := got[5].([]any)[0].(map[string]any)
		if open["module"] != "libc.so.6" || open["reason"] == nil || open["offset"] != "0x27249" {
			t.Errorf("an address without a name: %v", open)
		}
		variable := got[len(got)-1].([]any)[0].(map[string]any)["variable"]
		if diff := cmp.Diff(map[string]any{"name": "inventory::shelves", "linkage": "_ZN9inventory7shelvesE", "member": "[2].refs", "offset": "0x38", "size": "0x60"}, variable); diff != "" {
			t.Errorf("variable (-want +got):\n%s", diff)
		}
		if len(got) != 11 {
			t.Errorf("%d records have frames, want 11", len(got))
		}
	}
}
