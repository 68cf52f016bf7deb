package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/lineage"
)

// entryOf returns the entry of a file in a record.
func entryOf(path string, off int64) json.RawMessage {
	return fmt.Appendf(nil, `{"path":%q,"reading":[{"off":%d}]}`, path, off)
}

// parseJournal must add up the records before the first torn record, or before the first record
// whose output a power cut may have lost.
func TestJournalsAreFolded(t *testing.T) {
	const started, id = 1000, "id of this start"
	whole := record{Names: []string{"*"}, Files: []json.RawMessage{entryOf("a", 1), entryOf("b", 1)}}
	a2 := record{Boot: started, Files: []json.RawMessage{entryOf("a", 2)}}
	b2 := record{Boot: started, Files: []json.RawMessage{entryOf("b", 2)}}
	gone := record{Boot: started, Gone: []string{"a"}}
	withID := func(c record) record { c.BootID = id; return c }
	size := func(all ...record) (n int64) {
		for _, c := range all {
			b, err := appendRecord(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			n += int64(len(b))
		}
		return n
	}
	synced := func(all ...record) record { return record{Boot: started, Synced: size(all...)} }
	for name, test := range map[string]struct {
		records   []record
		change    func(data []byte) []byte
		now       boot             // the current start of the machine; zero: started
		want      map[string]int64 // offsets by path
		continues bool
		torn      bool
		damaged   bool
	}{
		"one record":       {records: []record{whole}, want: map[string]int64{"a": 1, "b": 1}, continues: true},
		"changes":          {records: []record{whole, a2, b2}, want: map[string]int64{"a": 2, "b": 2}, continues: true},
		"a file less":      {records: []record{whole, gone, b2}, want: map[string]int64{"b": 2}, continues: true},
		"and there again":  {records: []record{whole, gone, a2}, want: map[string]int64{"a": 2, "b": 1}, continues: true},
		"torn":             {records: []record{whole, a2, b2}, change: func(d []byte) []byte { return d[:len(d)-9] }, want: map[string]int64{"a": 2, "b": 1}, continues: true, torn: true},
		"no last line end": {records: []record{whole, a2}, change: func(d []byte) []byte { return d[:len(d)-1] }, want: map[string]int64{"a": 2, "b": 1}},
		"a bit": {records: []record{whole, a2, b2}, change: func(d []byte) []byte {
			return bytes.Replace(d, []byte(`"a","reading":[{"off":2`), []byte(`"a","reading":[{"off":3`), 1)
		}, want: map[string]int64{"a": 1, "b": 1}, continues: true, torn: true, damaged: true},
		"zeros at the end":       {records: []record{whole, a2}, change: func(d []byte) []byte { return append(d, make([]byte, 4096)...) }, want: map[string]int64{"a": 2, "b": 1}, continues: true, torn: true},
		"the clock was slewed":   {records: []record{whole, a2}, now: boot{time: started + 1}, want: map[string]int64{"a": 2, "b": 1}, continues: true},
		"power cut":              {records: []record{whole, a2}, now: boot{time: started + 60}, want: map[string]int64{"a": 1, "b": 1}},
		"the clock was set":      {records: []record{whole, withID(a2)}, now: boot{started + 60, id}, want: map[string]int64{"a": 2, "b": 1}, continues: true},
		"started twice":          {records: []record{whole, withID(a2)}, now: boot{started, "of another"}, want: map[string]int64{"a": 1, "b": 1}},
		"no ID can be read":      {records: []record{whole, withID(a2)}, now: boot{time: started}, want: map[string]int64{"a": 2, "b": 1}, continues: true},
		"no ID could be read":    {records: []record{whole, a2}, now: boot{started, id}, want: map[string]int64{"a": 2, "b": 1}, continues: true},
		"power cut after a sync": {records: []record{whole, a2, synced(whole, a2), b2}, now: boot{time: started + 60}, want: map[string]int64{"a": 2, "b": 1}},
		"power cut in a sync":    {records: []record{whole, a2, b2, synced(whole, a2)}, now: boot{time: started + 60}, want: map[string]int64{"a": 2, "b": 1}},
		"synced at the end":      {records: []record{whole, a2, b2, synced(whole, a2, b2)}, now: boot{time: started + 60}, want: map[string]int64{"a": 2, "b": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var data []byte
			for _, c := range test.records {
				var err error
				if data, err = appendRecord(data, c); err != nil {
					t.Fatal(err)
				}
			}
			if test.change != nil {
				data = test.change(data)
			}
			if test.now == (boot{}) {
				test.now.time = started
			}
			j, err := parseJournal(data, test.now)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]int64)
			for path, raw := range j.files {
				var s savedSource
				if err := json.Unmarshal(raw, &s); err != nil || s.Path != path {
					t.Fatal(err, s.Path, path)
				}
				got[path] = s.Reading[0].Off
			}
			if d := cmp.Diff(got, test.want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
			if j.continues != test.continues || j.torn != test.torn || j.damaged != test.damaged {
				t.Errorf("continues %v, torn %v, damaged %v; want %v, %v, %v", j.continues, j.torn, j.damaged, test.continues, test.torn, test.damaged)
			}
			if j.first != size(whole) || !slices.Equal(j.Names, whole.Names) {
				t.Errorf("the first record has %d bytes and names %q", j.first, j.Names)
			}
		})
	}
}

func FuzzJournal(f *testing.F) {
	b, err := appendRecord(nil, record{Files: []json.RawMessage{entryOf("a", 1)}})
	if err == nil {
		b, err = appendRecord(b, record{Boot: 5, Gone: []string{"a"}})
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, int64(5))
	f.Add(b[:len(b)-1], int64(900))
	f.Add([]byte(stateMagic), int64(0))
	f.Add([]byte{0, 0}, int64(0))
	f.Fuzz(func(t *testing.T, data []byte, time int64) {
		j, err := parseJournal(data, boot{time: time})
		if err != nil {
			return
		}
		if j.size > int64(len(data)) || j.first > j.size || j.torn != (j.size < int64(len(data))) {
			t.Fatalf("%d of %d bytes, the first record %d, torn %v", j.size, len(data), j.first, j.torn)
		}
		again, err := parseJournal(data[:j.size], boot{time: time})
		if err != nil || !maps.EqualFunc(again.files, j.files, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("without the rest: %v", err)
		}
	})
}

func TestWhatIsNoCheckpointIsKept(t *testing.T) {
	const text = "somebody's\n"
	for name, test := range map[string]struct {
		make func(t *testing.T, state, precious string) error
		want string
	}{
		"another file":          {func(t *testing.T, state, precious string) error { return os.Rename(precious, state) }, "not a checkpoint of symfilter, and not empty and is not changed: name another file, or remove this one"},
		"a link":                {func(t *testing.T, state, precious string) error { return os.Symlink(precious, state) }, "a symbolic link: name the file itself"},
		"a link to nothing":     {func(t *testing.T, state, precious string) error { return os.Symlink(precious+".none", state) }, "a symbolic link: name the file itself"},
		"another name of it":    {func(t *testing.T, state, precious string) error { return os.Link(precious, state) }, "not a checkpoint of symfilter, and not empty and is not changed: name another file, or remove this one"},
		"a folder":              {func(t *testing.T, state, precious string) error { return os.Mkdir(state, 0o777) }, "not a regular file but a folder"},
		"larger than any":       {func(t *testing.T, state, precious string) error { return sparse(state, stateMagic, 1<<30) }, "larger than any checkpoint: 1073741824 bytes and is not changed: name another file, or remove this one"},
		"zeros larger than any": {func(t *testing.T, state, precious string) error { return sparse(state, "", maxState+1) }, "larger than any checkpoint: 134217729 bytes and is not changed: name another file, or remove this one"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, state, precious := filepath.Join(dir, "app.log"), filepath.Join(dir, "state"), filepath.Join(dir, "precious")
			write(t, path, "one\n")
			write(t, precious, text)
			if err := test.make(t, state, precious); err != nil {
				t.Skip(err)
			}
			before := tree(t, dir)
			for range 2 {
				_, err := New(Options{Names: []string{path}, Open: newLog().open, State: state})
				if want := state + " is " + test.want; err == nil || err.Error() != want {
					t.Fatalf("got %v, want %s", err, want)
				}
			}
			if d := cmp.Diff(tree(t, dir), before); d != "" {
				t.Errorf("(-after +before)\n%s", d)
			}
		})
	}
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "other.log")
	write(t, state, text)
	for _, names := range [][]string{{state}, {path, state}} {
		if _, err := New(Options{Names: names, Open: newLog().open, State: state}); err == nil || !strings.Contains(err.Error(), "is a followed file") {
			t.Errorf("a checkpoint in a log's place: %v", err)
		}
	}
}

// sparse creates a file of size bytes that begins with head, followed by a hole.
func sparse(path, head string, size int64) error {
	if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// tree returns the type of each name in a folder, and the size and first bytes of files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		target, _ := os.Readlink(path)
		all[e.Name()] = fmt.Sprint(info.Mode(), target)
		if f, err := os.Open(path); err == nil && info.Mode().IsRegular() {
			head, _ := io.ReadAll(io.LimitReader(f, 100))
			f.Close()
			all[e.Name()] += fmt.Sprintf(" %d %q", info.Size(), head)
		}
	}
	return all
}

func TestEmptyFilesBecomeCheckpoints(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	write(t, path, "one\n")
	write(t, state, "")
	again(t, newLog(), Options{Names: []string{path}, State: state}, path, "one\n")
	again(t, newLog(), Options{Names: []string{path}, State: state}, path, "")
}

// testSaver returns a saver without entries. syncs counts the syncs of the output.
func testSaver(t *testing.T, taken func() int64) (w *saver, syncs *int) {
	t.Helper()
	syncs = new(int)
	w, err := newSaver(filepath.Join(t.TempDir(), "state"), nil, Options{Taken: taken, Sync: func() error { *syncs++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.release)
	return w, syncs
}

func savedAt(path string, off int64) savedSource {
	return savedSource{Path: path, Reading: []savedReading{{Mark: lineage.Mark{Off: off}}}}
}

// offsets returns the printed offset of each file in a state file, by path. If starts has an
// element, it replaces the last start of the machine.
func offsets(t *testing.T, path string, starts ...boot) map[string]int64 {
	t.Helper()
	j, err := readState(path, starts...)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int64)
	for path, raw := range j.files {
		var s savedSource
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		all[path] = s.Reading[len(s.Reading)-1].Off
	}
	return all
}

// Only the first record may list all entries. The output must be synced before the first record and
// before a mark.
func TestRecordsHaveWhatHasChanged(t *testing.T) {
	w, syncs := testSaver(t, nil)
	const files = 1000
	for i := range files {
		w.put(savedAt(fmt.Sprint("file ", i), 0), 0)
	}
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	first := mustSize(w.path)
	for i := range 100 {
		w.put(savedAt("file 7", int64(i+1)), 0)
		w.put(savedAt("file 8", 0), 0) // unchanged
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
	}
	if each := (mustSize(w.path) - first) / 100; each > 400 {
		t.Errorf("%d bytes a record, for one file of %d", each, files)
	}
	if *syncs != 1 {
		t.Errorf("%d syncs before the first mark", *syncs)
	}
	for range 3 { // nothing has changed before the second and third save
		if err := w.secure(); err != nil {
			t.Fatal(err)
		}
	}
	if *syncs != 2 {
		t.Errorf("%d syncs with the mark, want 2", *syncs)
	}
	got := offsets(t, w.path)
	if len(got) != files || got["file 7"] != 100 || got["file 8"] != 0 {
		t.Errorf("%d files, of one %d", len(got), got["file 7"])
	}
}

// A journal that has grown too large must be rewritten. Records that are written during the sync
// must be in the new file, too.
func TestJournalsThatHaveGrownAreWrittenAnew(t *testing.T) {
	w, _ := testSaver(t, nil)
	w.put(savedAt("b", 1), 0)
	n := int64(0)
	for mustSize(w.path) <= compactSize {
		n++
		s := savedAt("a", n)
		s.Context = strings.Repeat("x", 10000)
		w.put(s, 0)
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
	}
	w.sync = func() error { // more output during the sync
		w.put(savedAt("a", n+1), 0)
		return w.save()
	}
	if err := w.secure(); err != nil {
		t.Fatal(err)
	}
	if size := mustSize(w.path); size > 20000 {
		t.Errorf("%d bytes afterwards", size)
	}
	want := map[string]int64{"a": n + 1, "b": 1}
	if d := cmp.Diff(offsets(t, w.path), want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	data, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	// a power cut loses lines printed after the sync
	j, err := parseJournal(data, boot{time: 1})
	if err != nil || !bytes.Contains(j.files["a"], fmt.Appendf(nil, `"off":%d,`, n)) {
		t.Errorf("after a power cut %s, %v; want %d", j.files["a"], err, n)
	}
	w.put(savedAt("a", n+2), 0)
	if err := w.save(); err != nil || offsets(t, w.path)["a"] != n+2 {
		t.Errorf("the next record: %v, %v", err, offsets(t, w.path))
	}
}

func TestJournalsOfShortRunsDoNotGrow(t *testing.T) {
	dir := t.TempDir()
	largest := int64(0)
	for run := range 60 {
		w, err := newSaver(filepath.Join(dir, "state"), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := savedAt("a", int64(run))
		s.Context = strings.Repeat("x", 100_000)
		w.put(s, 0)
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		w.release() // as after a kill
		largest = max(largest, mustSize(w.path))
	}
	if largest > 3*compactSize {
		t.Errorf("%d bytes", largest)
	}
}

func TestStateFilesThatAreReplaced(t *testing.T) {
	w, _ := testSaver(t, nil)
	for i, change := range []func(){
		func() {},
		func() { os.Remove(w.path) },
		func() { os.Rename(w.path, w.path+".old"); os.WriteFile(w.path, []byte("other"), 0o600) },
	} {
		change()
		w.put(savedAt("a", int64(i+1)), 0)
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(offsets(t, w.path), map[string]int64{"a": int64(i + 1)}); d != "" {
			t.Errorf("%d: (-got +want)\n%s", i, d)
		}
	}
}

func TestTemporaryFilesOfKilledRunsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	o := Options{Names: []string{path}, State: state}
	write(t, path, "one\n")
	again(t, newLog(), o, path, "one\n")
	before := tree(t, dir)
	for _, name := range []string{".state.4711-0.tmp", ".state.1-99.tmp"} {
		write(t, filepath.Join(dir, name), "torn")
	}
	kept := []string{".state.x.tmp", ".state2.1-0.tmp", "state.1-0.tmp", ".state.1-0"}
	for _, name := range kept {
		write(t, filepath.Join(dir, name), "somebody's")
	}
	again(t, newLog(), o, path, "")
	after := tree(t, dir)
	for _, name := range kept {
		if after[name] == "" {
			t.Errorf("%s is gone", name)
		}
		delete(after, name)
	}
	delete(after, "state")
	delete(before, "state")
	if d := cmp.Diff(after, before); d != "" {
		t.Errorf("(-after +before)\n%s", d)
	}
}

func TestPowerCutsLoseNothing(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	o := Options{Names: []string{path}, State: state}
	write(t, path, "one\n")
	again(t, newLog(), o, path, "one\n") // the end of a run syncs its lines
	write(t, path, "two\n")
	r := begin(t, newLog(), o)
	r.expect(path, "two\n")
	r.until("a checkpoint", func() bool { return offsets(t, state)[path] == 8 })
	data, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	r.end()
	for _, cut := range []bool{false, true} {
		if err := os.WriteFile(state, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(state)
		if err != nil {
			t.Fatal(err)
		}
		now := lastBoot()
		if cut {
			now = boot{now.time + 60, "of another start"}
		}
		j, err := readJournal(f, now)
		f.Close()
		want := map[bool]string{false: `"off":8,`, true: `"off":4,`}[cut]
		if err != nil || !bytes.Contains(j.files[path], []byte(want)) {
			t.Errorf("power cut %v: %s, %v; want %s", cut, j.files[path], err, want)
		}
	}
}

func TestTornRecordsAreCutOff(t *testing.T) {
	w, _ := testSaver(t, nil)
	w.put(savedAt("a", 1), 0)
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.file.WriteString(stateMagic + "what fitted"); err != nil {
		t.Fatal(err)
	}
	w.torn = true
	w.put(savedAt("a", 2), 0)
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(offsets(t, w.path), map[string]int64{"a": 2}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

func TestOnlyWhatWasTakenCounts(t *testing.T) {
	var taken int64
	w, _ := testSaver(t, func() int64 { return taken })
	want := func(n int64) {
		t.Helper()
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		if got := offsets(t, w.path)["a"]; got != n {
			t.Errorf("with %d bytes taken the checkpoint says %d, want %d", taken, got, n)
		}
	}
	w.put(savedAt("a", 0), 0)
	want(0)
	const places = 1000
	for i := range int64(places) {
		w.put(savedAt("a", i+1), 100*(i+1))
	}
	if n := len(w.waiting["a"]); n > maxPlaces {
		t.Errorf("%d places wait", n)
	}
	taken = 99
	want(0)
	last := int64(0)
	for taken = 0; taken < 100*places; taken += 100 * places / maxPlaces {
		w.admit()
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		now := offsets(t, w.path)["a"]
		if 100*now > taken || now < last || 100*now < taken-4*100*places/maxPlaces {
			t.Errorf("with %d bytes taken the checkpoint says %d", taken, now)
		}
		last = now
	}
	taken = 100 * places
	want(places)
	if len(w.waiting) > 0 || w.held != 0 || w.waits() {
		t.Errorf("%d bytes still wait", w.held)
	}
}

func TestContextsAreBounded(t *testing.T) {
	w, _ := testSaver(t, nil)
	for i := range 4 {
		s := savedAt(fmt.Sprint(i), 1)
		s.Context = strings.Repeat("x", maxContexts/3)
		w.put(s, 0)
	}
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	j, err := readState(w.path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range 4 {
		var s savedSource
		if err := json.Unmarshal(j.files[fmt.Sprint(i)], &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(len(s.Context), s.Reading[0].Replay))
	}
	third := fmt.Sprint(maxContexts/3, false)
	if d := cmp.Diff(got, []string{third, third, third, "0 true"}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var p pacer
	if _, ok := p.due(); ok {
		t.Error("due although nothing was printed")
	}
	due := func(want time.Duration) {
		t.Helper()
		if at, ok := p.due(); !ok || at.Sub(start) != want {
			t.Errorf("due %v, after %v, want %v", ok, at.Sub(start), want)
		}
	}
	p.printed(start, 10)
	due(saveDelay)
	p.printed(start.Add(saveDelay/2), 10)
	due(saveDelay) // for the first line
	p.printed(start.Add(saveDelay/2), saveBytes)
	due(0) // after much output
	p.begin()
	p.end(start, time.Millisecond, false)
	p.printed(start, saveBytes)
	due((saveShare - 1) * time.Millisecond)
	var busy, all time.Duration
	for i := range 1000 { // of varying costs
		cost := time.Duration(i%7) * time.Millisecond
		p.begin()
		p.end(start, cost, false)
		p.printed(start, saveBytes)
		at, _ := p.due()
		busy, all = busy+cost, all+cost+at.Sub(start)
	}
	if share := float64(busy) / float64(all); share > 0.021 {
		t.Errorf("checkpoints take %.3f of the time", share)
	}
	for range 100 {
		p.end(start, time.Minute, false)
	}
	p.printed(start, 1)
	due(saveLatest)
	for n, want := range map[int]time.Duration{0: saveDelay, 1: 2 * saveDelay, 2: 4 * saveDelay, 5: saveStalled, 1000: saveStalled} {
		p = pacer{}
		p.delay(start, n)
		p.printed(start, 1)
		due(want)
	}
	p = pacer{}
	p.end(start, 0, true)
	p.printed(start, 1)
	due(saveRetry)
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Names: []string{filepath.Join(t.TempDir(), "app.log")}, Open: newLog().open}
	for want, change := range map[string]func(o *Options){
		"no names of files to follow":                 func(o *Options) { o.Names = nil },
		"the name of a file to follow is empty":       func(o *Options) { o.Names = []string{"a", ""} },
		"Options.Open is nil: no sink gets the lines": func(o *Options) { o.Open = nil },
		"the interval -1ns is negative":               func(o *Options) { o.Interval = -1 },
		"the wait of -1ns for late lines is negative": func(o *Options) { o.RotateWait = -1 },
		"-3 workers: the number is negative":          func(o *Options) { o.Workers = -3 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	sinkless := good
	sinkless.Open = func(string) (*Sink, error) { return nil, nil }
	write(t, good.Names[0], "one\n")
	f, err := New(sinkless)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, errNoSink) {
		t.Errorf("got %v, want %v", err, errNoSink)
	}
}
