// Symfilterd symbolizes logs as a service. It runs the pipelines of a configuration file. Each
// pipeline reads files, sockets, HTTP or journald, and writes to files, standard output, the peer
// or a socket.
//
//	symfilterd --config FILE [--check] [--no-sandbox]
//
// SIGHUP rereads the configuration and reopens outputs. SIGTERM and SIGINT end the daemon within
// five seconds. The exit code is 0 after SIGTERM, SIGINT or the end of all inputs. 1 means that the
// daemon cannot run, or that lines were lost at the end, since an output did not accept them. 2
// means wrong usage or an unusable configuration.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/daemon"
	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/service"
	"github.com/symfilter/symfilter/internal/startup"
)

const (
	exitOK    = 0
	exitIO    = 1
	exitUsage = 2
)

func main() {
	if err := startup.CheckDescriptors(); err != nil {
		os.Stderr.WriteString("symfilterd: " + err.Error() + "\n")
		os.Exit(exitIO)
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	inherited, err := service.Inherited() // before other files are opened
	if err != nil {
		fmt.Fprintf(os.Stderr, "symfilterd: %v\n", err)
		return exitIO
	}
	o, err := parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "symfilterd: %v\n", err)
		return exitUsage
	}
	if o.print != nil {
		if err := o.print(os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "symfilterd: %v\n", err)
			return exitIO
		}
		return exitOK
	}
	conf, err := daemon.Load(o.config)
	if err != nil {
		tell(err)
		return exitUsage
	}
	if o.check {
		return check(conf, o.config, os.Stderr)
	}
	return serve(conf, o, inherited)
}

// tell prints why the configuration cannot be used. Messages about mistakes begin with FILE:LINE,
// which editors open.
func tell(err error) {
	if _, ok := err.(daemon.Faults); !ok {
		err = fmt.Errorf("symfilterd: %w", err)
	}
	fmt.Fprintln(os.Stderr, err)
}

// check prints notes and faults about the files and folders in a configuration. It returns the exit
// status.
func check(conf *daemon.Config, path string, to io.Writer) int {
	notes, faults := conf.Inspect()
	for _, n := range notes {
		fmt.Fprintf(to, "%s: note: %s\n", path, n)
	}
	if len(faults) == 0 {
		return exitOK
	}
	for i := range faults {
		faults[i].File = path
	}
	fmt.Fprintln(to, faults)
	return exitUsage
}

func serve(conf *daemon.Config, o *options, inherited *service.Sockets) int {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // a signal during the start must not be lost
	signal.Ignore(syscall.SIGPIPE)     // a write to a closed pipe fails with EPIPE
	ctx, stop := untilSignal()
	defer stop()
	startup.TuneGarbage(startup.GarbageMedium)
	var limit atomic.Pointer[func(int64)] // sets the heap limit of the current configuration
	limitHeap := func(c *daemon.Config) {
		offHeap := startup.LimitHeap(heapLimit(c))
		limit.Store(&offHeap)
	}
	limitHeap(conf)

	level, format := new(slog.LevelVar), new(service.FormatVar)
	setLog := func(c *daemon.Config) {
		level.UnmarshalText([]byte(c.Log.Level)) // one of the words that Parse takes
		format.Set(service.Format(c.Log.Format))
	}
	setLog(conf)
	log := slog.New(service.NewHandler(os.Stderr, format, level))
	manager, err := service.Connect()
	if err != nil {
		log.Warn(err.Error())
	}
	warn := func(c *daemon.Config) {
		notes, _ := c.Inspect()
		for _, n := range notes {
			log.Warn(n)
		}
	}
	warn(conf)
	confine := sandbox.Apply
	if o.free {
		confine = func(sandbox.Policy) sandbox.State { return sandbox.State{Missing: []string{"--no-sandbox"}} }
	}
	d, err := daemon.New(conf, daemon.Options{
		Confine: confine,
		Log:     log, Stdin: os.Stdin, Stdout: os.Stdout, Inherited: inherited, Manager: manager, Version: startup.Release(),
		OffHeap:  func(bytes int64) { (*limit.Load())(bytes) },
		Reloaded: func(c *daemon.Config) { setLog(c); limitHeap(c); warn(c) },
	})
	if err != nil {
		log.Error(err.Error())
		return exitIO
	}
	go func() {
		for range hup {
			// Refresh logs its error
			d.Refresh(func() (*daemon.Config, error) { return daemon.Load(o.config) })
		}
	}()
	if err := d.Run(ctx); err != nil {
		log.Error(err.Error())
		return exitIO
	}
	return exitOK
}

// echo is how long after a signal further signals are ignored: a service manager, or timeout(1),
// signals both a process and its group.
const echo = 200 * time.Millisecond

// untilSignal returns a context that is done when SIGTERM or SIGINT arrives. Another signal ends
// the process at once, unless it arrives within echo of the first.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		for first := time.Now(); ; {
			sig, ok := (<-signals).(syscall.Signal)
			if ok && time.Since(first) >= echo {
				os.Exit(128 + int(sig))
			}
		}
	}()
	return ctx, cancel
}

// heapLimit returns the limit of the heap, in bytes: the memory for debug files, half as much for
// unpacking, and the memory for contexts.
func heapLimit(c *daemon.Config) int64 {
	return int64(c.Symbols.MaxMemory) + int64(c.Symbols.MaxMemory)/2 + int64(c.Limits.ContextBytes)
}
