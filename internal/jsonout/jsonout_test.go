package jsonout

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

func TestObjectsAreOfJSON(t *testing.T) {
	id, err := buildid.Parse([]byte("c0ffee00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		write func(*Buffer)
		want  string
	}{
		{"nothing", func(*Buffer) {}, `{"v":1}`},
		{"members", func(b *Buffer) {
			b.String("a", "b")
			b.Bytes("c", []byte("d"))
			b.Optional("absent", "")
			b.Optional("e", "f")
			b.Uint("g", 1<<64-1)
			b.Int("h", -1)
			b.Bool("i", true)
			b.Hex("j", 1<<60)
		}, `{"v":1,"a":"b","c":"d","e":"f","g":18446744073709551615,"h":-1,"i":true,"j":"0x1000000000000000"}`},
		{"foreign names", func(b *Buffer) {
			b.Key([]byte("\"\n\xff"))
			b.StringItem([]byte("x"))
			b.Key([]byte("{"))
			b.IntItem(-1)
			b.Key(nil)
			b.Item()
			b.EndObject()
		}, `{"v":1,"\"\n` + "\ufffd" + `":"x","{":-1,"":{}}`},
		{"nothing that a terminal would obey", func(b *Buffer) { b.String("a", "\x1b[2J\u202e\u2028") }, `{"v":1,"a":"\u001b[2J\u202e\u2028"}`},
		{"what HTML would interpret is readable", func(b *Buffer) { b.String("function", "Pool<ledger>::at(int&)") }, `{"v":1,"function":"Pool<ledger>::at(int&)"}`},
		{"arrays and objects", func(b *Buffer) {
			b.Array("none")
			b.EndArray()
			b.Array("list")
			b.StringItem([]byte("a"))
			b.IntItem(2)
			b.Item()
			b.EndObject()
			b.Item()
			b.Object("o")
			b.Array("p")
			b.EndArray()
			b.EndObject()
			b.Bool("q", false)
			b.EndObject()
			b.EndArray()
			b.Uint("after", 1)
		}, `{"v":1,"none":[],"list":["a",2,{},{"o":{"p":[]},"q":false}],"after":1}`},
		{"values made before", func(b *Buffer) {
			var made Buffer
			b.Array("none")
			b.Values(made)
			b.EndArray()
			for range 2 {
				made.Item()
				made.EndObject()
			}
			b.Array("two")
			b.Values(made)
			b.Item()
			b.EndObject()
			b.EndArray()
		}, `{"v":1,"none":[],"two":[{},{},{}]}`},
		{"members made before", func(b *Buffer) { b.Members(nil); b.Members([]byte(`"a":1,"b":2`)); b.Uint("c", 3) }, `{"v":1,"a":1,"b":2,"c":3}`},
		{"text", func(b *Buffer) { b.Text([]byte("gr\u00fcn \ufffd")) }, `{"v":1,"text":"grün ` + "\ufffd" + `"}`},
		{"bytes that are not text", func(b *Buffer) { b.Text([]byte("a\xff")) }, `{"v":1,"text":"a` + "\ufffd" + `","raw":"Yf8="}`},
		{"build IDs", func(b *Buffer) { b.BuildID(buildid.ID{}); b.BuildID(id) }, `{"v":1,"build_id":"c0ffee00"}`},
		{"frames", func(b *Buffer) {
			b.Frames([]symbolize.Frame{
				{Func: "f()", Linkage: "_Z1fv", File: "f.cc", Line: 3, Column: 4, Inlined: true},
				{Func: "main", Linkage: "main", Offset: 16},
				{},
			})
		}, `{"v":1,"frames":[{"function":"f()","linkage":"_Z1fv","file":"f.cc","line":3,"column":4,"inlined":true},` +
			`{"function":"main","offset":"0x10","inlined":false},{"function":"","offset":"0x0","inlined":false}]}`},
		{"a variable", func(b *Buffer) {
			b.Object("variable")
			b.Variable(&symbolize.Variable{Name: "a::b", Linkage: "_ZN1a1bE", Member: ".refs", Offset: 8, Size: 16})
			b.EndObject()
		}, `{"v":1,"variable":{"name":"a::b","linkage":"_ZN1a1bE","member":".refs","offset":"0x8"}}`},
		{"reasons", func(b *Buffer) { b.Reason(nil) }, `{"v":1,"reason":"no symbol covers the address"}`},
		{"reasons of errors", func(b *Buffer) { b.Reason(errors.New("no file")) }, `{"v":1,"reason":"no file"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := Buffer("{}\n")
			b.Line()
			tt.write(&b)
			b.EndLine()
			line := bytes.TrimPrefix(b, []byte("{}\n"))
			if string(line) != tt.want+"\n" || !json.Valid(line) {
				t.Errorf("got\n%s, want\n%s", line, tt.want)
			}
		})
	}
}

func TestFrameLinesAllocateNothing(t *testing.T) {
	b := make(Buffer, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { b = b[:0]; frameLine(&b) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

var (
	lineText = []byte("    #1 0x55d0c0ffee42 in ledger::Pool<ledger::Entry>::at(unsigned long) const pool.h:42:17")
	inFrames = []symbolize.Frame{
		{Func: "ledger::Pool<ledger::Entry>::at(unsigned long) const", Linkage: "_ZNK6ledger4PoolINS_5EntryEE2atEm", File: "/src/ledger/pool.h", Line: 42, Column: 17, Inlined: true},
		{Func: "ledger::post(ledger::Entry const&)", Linkage: "_ZN6ledger4postERKNS_5EntryE", File: "/src/ledger/post.cc", Line: 118, Column: 3},
	}
)

func frameLine(b *Buffer) {
	b.Line()
	b.Text(lineText)
	b.Array("elements")
	b.Item()
	b.String("tag", "bt")
	b.Uint("frame", 1)
	b.Hex("address", 0x55d0c0ffee42)
	b.Hex("lookup", 0x55d0c0ffee41)
	b.String("module", "ledgerd")
	b.String("build_id", "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00")
	b.Hex("offset", 0xee41)
	b.Frames(inFrames)
	b.EndObject()
	b.EndArray()
	b.EndLine()
}

// BenchmarkFrameLine compares a Buffer with encoding/json, which does not escape the line for
// terminals. The figures are in docs/decisions/json.md.
func BenchmarkFrameLine(b *testing.B) {
	b.Run("jsonout", func(b *testing.B) {
		b.ReportAllocs()
		var line Buffer
		for b.Loop() {
			line = line[:0]
			frameLine(&line)
		}
	})
	type frame struct {
		Function string `json:"function"`
		Linkage  string `json:"linkage,omitempty"`
		File     string `json:"file,omitempty"`
		Line     uint32 `json:"line"`
		Column   uint32 `json:"column"`
		Inlined  bool   `json:"inlined"`
	}
	type element struct {
		Tag     string  `json:"tag"`
		Frame   uint64  `json:"frame"`
		Address string  `json:"address"`
		Lookup  string  `json:"lookup"`
		Module  string  `json:"module"`
		BuildID string  `json:"build_id"`
		Offset  string  `json:"offset"`
		Frames  []frame `json:"frames"`
	}
	type object struct {
		V        int       `json:"v"`
		Text     string    `json:"text"`
		Raw      []byte    `json:"raw,omitempty"`
		Elements []element `json:"elements,omitempty"`
	}
	hex := func(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }
	b.Run("encoding", func(b *testing.B) {
		b.ReportAllocs()
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		for b.Loop() {
			out.Reset()
			frames := make([]frame, 0, len(inFrames))
			for _, f := range inFrames {
				frames = append(frames, frame{f.Func, f.Linkage, f.File, f.Line, f.Column, f.Inlined})
			}
			err := e.Encode(object{V: 1, Text: string(lineText), Elements: []element{{
				"bt", 1, hex(0x55d0c0ffee42), hex(0x55d0c0ffee41), "ledgerd", "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00", hex(0xee41), frames,
			}}})
			if err != nil {
				b.Fatal(err)
			}
		}
		var line Buffer
		if frameLine(&line); out.String() != string(line) {
			b.Errorf("got\n%s, want\n%s", out.Bytes(), line)
		}
	})
}
