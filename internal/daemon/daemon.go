package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/service"
	"github.com/symfilter/symfilter/internal/unpack"
)

const stopPatience = 4 * time.Second

const restEvery = 2 * time.Second

// manyFilters is the number of filters, of about 150 KB each, that makes a burst large. After a
// large burst, the daemon returns memory to the system at once. Without this, Go's runtime would
// take minutes.
const manyFilters = 32

// Options connect a Daemon to its process.
type Options struct {
	Log       *slog.Logger
	Stdin     io.Reader
	Stdout    *os.File
	Inherited *service.Sockets // sockets from the service manager; nil: none
	Manager   *service.Manager // nil: none
	Version   string           // shown in the metrics
	// called when the bytes of debug files outside of the heap change; may be nil
	OffHeap func(int64)
	// called once, before any input is read; may be nil
	Confine func(sandbox.Policy) sandbox.State
	// called by Refresh once a new configuration is in use, before the log message; may be nil
	Reloaded func(*Config)
}

// A Daemon runs the pipelines of a configuration.
type Daemon struct {
	house   *house
	answers http.Handler // handles requests to the admin listener
	phase   atomic.Int32
	view    atomic.Pointer[view]

	unreached atomic.Bool // the service manager has missed a message

	one       sync.Mutex // guards the fields below; held during a reload
	conf      *Config
	symbols   *symbols
	pipelines map[string]*pipeline
	admin     *admin // nil: none
	api       *api   // nil: none
	worked    int    // maximum number of filters since memory was last returned
}

// A view is the daemon's state for metrics and health. A view is immutable: a reload replaces it.
type view struct {
	pipelines []*pipeline // sorted by name
	symbols   *symbols
	admin     callers
}

// New opens the inputs and outputs of c, restricts the process by Options.Confine to the rights
// that c needs, and then starts reading.
func New(c *Config, o Options) (*Daemon, error) {
	d := &Daemon{
		house: &house{
			log: o.Log, ports: newPorts(o.Inherited), unpacking: unpack.NewMemory(int64(c.Symbols.MaxMemory) / 2), options: o,
			measures: newMeasures(), began: time.Now(), stdin: newLineReader(o.Stdin), depotName: newDepotName(),
		},
		conf: &Config{}, pipelines: make(map[string]*pipeline),
	}
	d.house.leaving, d.house.leave = context.WithCancel(context.Background())
	d.house.outputs = newOutputs(o.Log, o.Stdout, func(err error, dir string) error { return d.house.box.explain(err, dir) })
	d.house.limits.Store(&c.Limits)
	d.house.contexts = &contexts{house: d.house}
	d.house.ledger = &ledger{contexts: d.house.contexts}
	d.house.webs = newWebs(o.Log, d.house.ports, &room{most: func() int { return d.house.limits.Load().Connections }})
	if d.house.options.Manager == nil {
		d.house.options.Manager = new(service.Manager)
	}
	d.answers = d.newAnswers()
	change, err := d.prepare(c)
	if err != nil {
		return nil, err
	}
	if err := d.confine(c); err != nil {
		change.discard()
		return nil, err
	}
	d.commit(change)
	return d, nil
}

// Run runs the pipelines until ctx is done. Without a service, Run also ends once all inputs have
// ended. At its end, Run writes all lines that it has read. After stopPatience, lines that an
// output does not accept are lost.
func (d *Daemon) Run(ctx context.Context) error {
	d.begin()
	// a reload that waits for an output must not delay the end
	defer context.AfterFunc(ctx, d.house.leave)()
	managed, cancel := context.WithCancel(context.Background())
	var manager sync.WaitGroup
	manager.Go(func() { d.manage(managed) })
	defer manager.Wait()
	defer cancel()
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.end()
		case now := <-tick.C:
			if !d.tick(now) {
				return d.end()
			}
		}
	}
}

// tick parks idle sessions, drops expired contexts, and returns memory to the system after a burst.
// It reports whether an input or the service is still running.
func (d *Daemon) tick(now time.Time) bool {
	d.one.Lock()
	defer d.one.Unlock()
	running := d.api != nil
	d.house.contexts.expire(now)
	for _, p := range d.pipelines {
		p.rest(now)
		select {
		case <-p.done:
		default:
			running = true
		}
	}
	awake := d.house.contexts.filters()
	if awake == 0 && d.worked >= manyFilters {
		debug.FreeOSMemory() // an idle daemon does not need the memory of the last burst
		d.worked = 0
	}
	d.worked = max(d.worked, awake)
	return running
}

func (d *Daemon) end() error {
	d.house.leave()
	d.one.Lock()
	defer d.one.Unlock()
	d.house.webs.stopping.Store(true)
	if d.api != nil {
		d.api.end()
	}
	defer d.stopping()()
	cut := time.AfterFunc(stopPatience, func() {
		for _, p := range d.pipelines {
			p.stage.Load().end()
		}
	})
	defer cut.Stop()
	var all sync.WaitGroup
	for _, p := range d.pipelines {
		p.last.Store(d.house.states.isPrivate(d.conf.State))
		p.ending.Store(true)
		all.Go(p.halt)
	}
	all.Wait()
	if d.api != nil {
		<-d.api.close()
	}
	var errs []error
	for _, p := range d.pipelines {
		errs = append(errs, p.stage.Load().close())
	}
	if d.admin != nil {
		d.admin.close()
	}
	d.symbols.release()
	d.house.ports.close()
	return errors.Join(append(errs, d.house.states.remove())...)
}

// A change is a new configuration whose new or changed inputs and outputs are open, but not yet in
// use.
type change struct {
	conf    *Config
	symbols *symbols
	fresh   map[string]*stage // stages of new or changed pipelines
	inputs  map[string]runner // new or changed inputs, by pipeline
	made    map[string]*pipeline
	certs   func() // activates reread certificates
	admin   *admin // nil: unchanged, or none is configured
	api     *api   // nil: unchanged, or none is configured
}

// Reload replaces the configuration. Unchanged pipelines reopen their outputs. Changed pipelines
// get new options and outputs. If an input has changed, Reload stops it and starts the new input.
// If Reload returns an error, nothing has changed.
func (d *Daemon) Reload(c *Config) error {
	d.one.Lock()
	defer d.one.Unlock()
	if d.house.leaving.Err() != nil {
		return errors.New("symfilterd is stopping")
	}
	change, err := d.prepare(c)
	if err != nil {
		return err
	}
	d.commit(change)
	d.house.measures.look()
	var all sync.WaitGroup // each goroutine may wait for a blocked write
	for name, p := range d.pipelines {
		if st := p.stage.Load(); change.fresh[name] == nil && st.out != nil {
			all.Go(func() {
				if err := st.out.reopen(); err != nil {
					p.log.Error("the output cannot be opened again", "error", err)
				}
			})
		}
	}
	all.Wait()
	return nil
}

// prepare opens the new or changed parts of c.
func (d *Daemon) prepare(c *Config) (_ *change, err error) {
	ch := &change{conf: c, fresh: make(map[string]*stage), inputs: make(map[string]runner), made: make(map[string]*pipeline)}
	defer func() {
		if err != nil {
			ch.discard()
		}
	}()
	if f := c.conflicts(); f != nil { // c need not come from Parse
		return nil, f
	}
	if err := d.house.box.allows(c); err != nil {
		return nil, err
	}
	if ch.certs, err = d.house.ports.reread(c.certificates()); err != nil {
		return nil, err
	}
	if ch.symbols, err = d.symbolsOf(c); err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	same := ch.symbols == d.symbols && c.Limits == d.conf.Limits && c.State == d.conf.State
	for _, name := range slices.Sorted(maps.Keys(c.Pipelines)) {
		now, before := c.Pipelines[name], d.conf.Pipelines[name]
		p := d.pipelines[name]
		if p != nil && same && reflect.DeepEqual(now, before) {
			continue
		}
		stage, err := newStage(now, c.Limits, ch.symbols.share(), d.house.outputs.open)
		if err != nil {
			ch.symbols.release()
			return nil, fmt.Errorf("pipelines.%s: %w", name, err)
		}
		ch.fresh[name] = stage
		if p != nil && c.State == d.conf.State && sameReading(now, before) {
			continue
		}
		if p == nil {
			p = newPipeline(name, d.house, "", stage)
		}
		ch.made[name] = p
		in, err := d.openInput(p, now.Input)
		if err != nil {
			return nil, fmt.Errorf("pipelines.%s.input: %w", name, err)
		}
		ch.inputs[name] = in
	}
	if c.Admin.Listen != "" && !reflect.DeepEqual(c.Admin, d.conf.Admin) {
		if ch.admin, err = d.openAdmin(c.Admin); err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
	}
	if err := d.prepareAPI(ch); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return ch, nil
}

// symbolsOf returns the symbols of c, which the caller must release: the current symbols if their
// configuration is unchanged, otherwise new symbols.
func (d *Daemon) symbolsOf(c *Config) (*symbols, error) {
	if d.symbols != nil && reflect.DeepEqual(c.Symbols, d.conf.Symbols) && c.Service.Debuginfod == d.conf.Service.Debuginfod {
		return d.symbols.share(), nil
	}
	forwarded := "" // empty unless this process is a debuginfod server
	if c.Service.Debuginfod {
		forwarded = d.house.depotName
	}
	return openSymbols(c.Symbols, d.house.measures.observe, d.house.options.OffHeap, forwarded)
}

func (c *change) discard() {
	for _, s := range c.fresh {
		s.close()
	}
	for _, in := range c.inputs {
		in.close()
	}
	if c.admin != nil {
		c.admin.close()
	}
	if c.api != nil {
		<-c.api.close()
	}
	if c.symbols != nil {
		c.symbols.release()
	}
}

func (d *Daemon) commit(c *change) {
	d.house.webs.swap.Lock()
	defer d.house.webs.swap.Unlock()
	d.house.limits.Store(&c.conf.Limits)
	c.certs()
	d.swap(c)
	d.show(c)
	if d.symbols != nil {
		d.symbols.release()
	}
	d.conf, d.symbols = c.conf, c.symbols
}

// show makes the change visible to metrics and health. It also replaces the admin listener and the
// service if their configurations have changed.
func (d *Daemon) show(c *change) {
	m := d.house.measures
	now := &view{symbols: c.symbols, admin: callers{c.conf.Admin.Listen, c.conf.Admin.Hosts}}
	for _, name := range slices.Sorted(maps.Keys(d.pipelines)) {
		now.pipelines = append(now.pipelines, d.pipelines[name])
	}
	d.view.Store(now)
	if c.symbols != d.symbols {
		var before *debuginfod.Client
		if d.symbols != nil {
			before = d.symbols.Servers
		}
		m.nameServers(before, c.symbols.Servers)
	}
	if d.admin != nil && !reflect.DeepEqual(c.conf.Admin, d.conf.Admin) {
		d.admin.close()
		d.admin = nil
	}
	if c.admin != nil {
		d.admin = c.admin
		c.admin.serve(d.house.log)
	}
	d.turnAPI(c)
	m.reloadError.Store(nil)
	m.reloaded.Store(time.Now().UnixNano())
}

func (d *Daemon) openInput(p *pipeline, c Input) (runner, error) {
	switch {
	case len(c.Files) > 0:
		return openFiles(p, c)
	case c.Stdin:
		return &stdin{p, d.house.stdin}, nil
	case c.Listen != "":
		return openListen(p, c)
	case c.HTTP != "", c.Journal != "":
		return openHTTP(p, c)
	}
	return nil, errors.New("no input is given: set one of files, stdin, listen, http and journal_upload")
}
