package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
)

// switchPatience bounds how long a reload waits for ending inputs. If the output of a changed
// pipeline blocks, its new input begins later. If the output of a removed pipeline blocks,
// unwritten lines are lost.
const (
	switchPatience = 2 * time.Second
	removePatience = 20 * time.Second // for a removed pipeline whose output accepts lines
)

// A turnover replaces a pipeline's running input by its next input.
type turnover struct {
	p      *pipeline
	in     runner
	from   *pipeline // renamed pipeline that p continues; nil: none
	state  string    // new prefix of the paths of p's checkpoints
	begins chan struct{}
}

// start ends the running input, if any, and then starts the next input. It does not wait.
func (t *turnover) start() {
	p, before := t.p, t.p
	if t.from != nil {
		before = t.from
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, stop := before.done, before.stop
	p.stop, p.done = cancel, make(chan struct{})
	done := p.done
	go func() {
		if ended != nil {
			stop()
			<-ended
		}
		if err := moveState(before.state, t.state); err != nil {
			p.log.Error("the checkpoint cannot be moved: lines may be read again", "from", before.state, "to", t.state, "error", err)
		}
		p.state, p.waits = t.state, ctx
		close(t.begins)
		p.supervise(ctx, t.in, done)
	}()
}

func (t *turnover) hasBegun() bool {
	select {
	case <-t.begins:
		return true
	default:
		return false
	}
}

// turnOver starts all pipelines of a change. It waits for their inputs and for removed pipelines,
// but at most switchPatience. Then it waits for the paths of HTTP inputs, again at most
// switchPatience. Once leaving is done, it does not wait.
func turnOver(leaving context.Context, all []*turnover, gone []chan struct{}) {
	patience, cancel := context.WithTimeout(leaving, switchPatience)
	defer cancel()
	for _, t := range all {
		t.start()
		gone = append(gone, t.begins)
	}
	for _, g := range gone {
		select {
		case <-g:
		case <-patience.Done():
		}
	}
	ready, cancel := context.WithTimeout(leaving, switchPatience)
	defer cancel()
	for _, t := range all {
		if !t.hasBegun() {
			if leaving.Err() == nil {
				t.p.log.Warn("the output blocks or is slow: the new input begins after the lines of the old input are written")
			}
			continue
		}
		if h, ok := t.in.(*httpInput); ok { // an HTTP input gets its paths soon after its start
			select {
			case <-h.ready:
			case <-ready.Done():
			}
		}
	}
}

// remove ends the pipeline, and then closes gone. It discards lines that cannot be written: see
// endsUnlessBlocked. The checkpoint is kept, since a later reload may add the pipeline again.
func (p *pipeline) remove() (gone chan struct{}) {
	gone = make(chan struct{})
	p.stop()
	go func() {
		defer close(gone)
		if !p.endsUnlessBlocked() {
			p.log.Warn("the pipeline was removed or renamed while its output blocked: lines already read were not written")
			p.stage.Load().end()
			<-p.done
		}
		st := p.stage.Load()
		if owed := p.closeStage(st); len(st.conf.Input.Files) == 0 {
			p.lose(owed)
		}
		p.memory.forget()
	}()
	return gone
}

// endsUnlessBlocked waits until the input has ended. It returns false if a write blocks for
// switchPatience, or if the input takes longer than removePatience. Once the daemon ends, the input
// has half of stopPatience.
func (p *pipeline) endsUnlessBlocked() bool {
	tick := time.NewTicker(switchPatience / 20)
	defer tick.Stop()
	leaving := p.house.leaving.Done()
	for last := time.Now().Add(removePatience); ; {
		select {
		case <-p.done:
			return true
		case <-leaving:
			leaving, last = nil, time.Now().Add(stopPatience/2)
		case now := <-tick.C:
			if _, stalled, _ := p.counts.writes.state(now); stalled >= switchPatience || now.After(last) {
				return false
			}
		}
	}
}

// renamed returns a pipeline that c removes and whose old configuration satisfies the function
// input, or nil. It skips the pipelines in taken, and adds the returned pipeline to taken.
func (d *Daemon) renamed(c *change, input func(Pipeline) bool, taken map[*pipeline]bool) *pipeline {
	for name, p := range d.pipelines {
		if _, stays := c.conf.Pipelines[name]; !stays && !taken[p] && input(d.conf.Pipelines[name]) {
			taken[p] = true
			return p
		}
	}
	return nil
}

// sameReading reports whether the input of a can continue as the input of b. For files, the outputs
// must also be of one kind: both files, both standard output, or both the same connection. The
// checkpoint leaves out lines that the reader of a pipe or connection has not yet taken.
func sameReading(a, b Pipeline) bool {
	return reflect.DeepEqual(a.Input, b.Input) && (len(a.Input.Files) == 0 || (a.Output.File == "") == (b.Output.File == "") && a.Output.Connect == b.Output.Connect && reflect.DeepEqual(a.Output.TLS, b.Output.TLS))
}

// moveState moves the checkpoints of a pipeline. from and to are prefixes of their paths.
func moveState(from, to string) error {
	if from == to || from == "" || to == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(from))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		kind, ok := strings.CutPrefix(e.Name(), filepath.Base(from)+".")
		if !ok || strings.Contains(kind, ".") || !e.Type().IsRegular() {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		old := from + "." + kind
		if err := os.Rename(old, to+"."+kind); err != nil {
			err = copyFile(old, to+"."+kind) // another file system
			if err == nil {
				err = os.Remove(old)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// A stateRoom selects the folder of checkpoints. If none is configured, it makes a private folder,
// since inputs continue from their checkpoints after a reload. The private folder is removed at the
// end of the run.
type stateRoom struct{ private string }

// path returns the prefix of a pipeline's checkpoints, or "" if there is no folder.
func (s *stateRoom) path(h *house, state, name string) string {
	if state != "" {
		return filepath.Join(state, name)
	}
	if s.private == "" {
		dir, err := os.MkdirTemp(privateRoot(), "symfilterd-")
		if err != nil {
			h.log.Warn("no temporary folder for checkpoints: a reload that changes an input reads its files again; set the key state", "error", err)
			return ""
		}
		s.private = dir
	}
	return filepath.Join(s.private, name)
}

func privateRoot() string { return cmp.Or(os.Getenv("RUNTIME_DIRECTORY"), os.TempDir()) }

// isPrivate reports whether the end of the run removes the checkpoints.
func (s *stateRoom) isPrivate(state string) bool { return state == "" }

func (s *stateRoom) remove() error {
	if s.private == "" {
		return nil
	}
	return os.RemoveAll(s.private)
}

// swap replaces the stages and inputs of the daemon by those of the change c, and removes
// pipelines. If a new pipeline has the same input as a removed pipeline, it continues the removed
// pipeline.
func (d *Daemon) swap(c *change) {
	for name, next := range c.fresh {
		if p := d.pipelines[name]; p != nil {
			p.succeed(next)
		}
		if next.out != nil {
			if err := next.out.reopen(); err != nil {
				d.house.log.Error("the output cannot be opened yet", "pipeline", name, "error", err)
			}
		}
	}
	var turns []*turnover
	taken := make(map[*pipeline]bool)
	for name, in := range c.inputs {
		t := &turnover{p: c.made[name], in: in, state: d.house.states.path(d.house, c.conf.State, name), begins: make(chan struct{})}
		if d.pipelines[name] == nil {
			t.from = d.renamed(c, func(before Pipeline) bool { return sameReading(before, c.conf.Pipelines[name]) }, taken)
		}
		turns = append(turns, t)
	}
	var gone []chan struct{}
	for name, p := range d.pipelines {
		if _, stays := c.conf.Pipelines[name]; stays {
			continue
		}
		delete(d.pipelines, name)
		gone = append(gone, p.remove())
	}
	for name, p := range c.made {
		d.pipelines[name] = p
	}
	turnOver(d.house.leaving, turns, gone)
}
