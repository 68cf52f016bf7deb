package valgrind

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// eachFrame calls visit for each physical frame of a report, with the next inner frame.
func eachFrame(t *testing.T, input []byte, visit func(f, inner report.RawFrame)) {
	t.Helper()
	r := NewReader(func(rec *Record) error {
		for _, it := range rec.Items {
			if it.Name != "stack" || it.Leaf {
				continue
			}
			inner := report.RawFrame{}
			frames := rec.Frames[it.First:it.Last]
			for i := range frames {
				f := &frames[i]
				if i+1 < len(frames) && haveSameAddress(f, &frames[i+1]) {
					continue
				}
				raw := report.RawFrame{Addr: f.IP, Exact: inner == report.RawFrame{}, Object: string(f.Obj), Func: string(f.Fn), File: string(f.File), Line: f.Line}
				visit(raw, inner)
				inner = raw
			}
		}
		return nil
	})
	if _, err := r.Write(input); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// biasesOf returns the biases of the objects of a process.
func biasesOf(p *process) map[string]uint64 {
	all := make(map[string]uint64)
	for _, e := range p.places {
		all[e.of.name] = e.bias
	}
	return all
}

// From the frames of a report, Places must find the same biases as a tracker from the report's XML.
// It must also name the frames.
func TestPlacesOfFramesAreThoseOfReports(t *testing.T) {
	for _, name := range []string{"names", "lines"} {
		t.Run(name, func(t *testing.T) {
			input, err := os.ReadFile(filepath.Join(recorded, name+".xml"))
			if err != nil {
				t.Fatal(err)
			}
			o, _ := recordedOptions(t)
			o.Ahead = readAhead(t, input, o)
			of := newTracker(&o)
			if err := NewReader(func(r *Record) error { of.changeProcess(r); return nil }).write(input); err != nil {
				t.Fatal(err)
			}
			want := biasesOf(of.cur)
			of.files.close()

			var named int64
			o.Named = func(n int64) { named = n }
			p := newPlaces(of.cur.exe, o)
			eachFrame(t, input, p.Learn)
			functions := make(map[string]bool)
			eachFrame(t, input, func(f, _ report.RawFrame) {
				f.Func, f.File, f.Line = "", "", 0
				if frames, id := p.Frames(f); len(frames) > 0 && !id.IsZero() {
					functions[frames[len(frames)-1].Func] = true
				}
			})
			if diff := cmp.Diff(biasesOf(p.t.cur), want); diff != "" {
				t.Errorf("biases: got -, want +\n%s", diff)
			}
			p.Close()
			if len(functions) == 0 || named < int64(len(functions)) {
				t.Errorf("%d frames got names, of the functions %v", named, functions)
			}
		})
	}
}

// write passes a whole report to r, and closes r.
func (r *Reader) write(input []byte) error {
	if _, err := r.Write(input); err != nil {
		return err
	}
	return r.Close()
}

// A frame with a function in the report must be unchanged and not counted. A frame without an
// object, or whose object file is missing, must be counted as unresolved.
func TestPlacesCountWhatStaysUnresolved(t *testing.T) {
	var messages []string
	var failed []symbolize.Unresolved
	o := Options{ReportOptions: symbolize.ReportOptions{
		Symbolizer: symbolize.New(symbolize.Options{}),
		Diagnose:   func(message string) { messages = append(messages, message) },
		Unresolved: func(all []symbolize.Unresolved) { failed = all },
	}}
	defer o.Symbolizer.Close()
	p := newPlaces("/bin/a", o)
	unknown := report.RawFrame{Addr: 0x37}
	missing := report.RawFrame{Addr: 0x109123, Object: "/lib/missing.so"}
	known := report.RawFrame{Addr: 0x109124, Object: "/lib/other.so", Func: "f"} // unchanged, without a message
	p.Learn(unknown, report.RawFrame{})
	p.Learn(missing, unknown)
	p.Learn(known, missing)
	for _, f := range []report.RawFrame{unknown, missing, known} {
		if frames, _ := p.Frames(f); frames != nil {
			t.Errorf("%v: got %v", f, frames)
		}
	}
	p.Close()
	var got []string
	for _, u := range failed {
		got = append(got, fmt.Sprintf("%q %d %v", u.Name, u.Frames, u.Err))
	}
	want := []string{`"" 1 ` + errNoObject.Error(), `"/lib/missing.so" 1 ` + report.ErrNoFile.Error()}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got := strings.Join(messages, "\n"); got != "/lib/missing.so: "+report.ErrNoFile.Error()+"; the frames of this file stay as they are" {
		t.Errorf("got %q", got)
	}
}
