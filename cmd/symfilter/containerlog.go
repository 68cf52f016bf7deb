package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/containerlog"
)

// containerDrain bounds the reading after a signal. containerd sends a signal when the container
// has ended, while its last lines are still in the pipes. It kills symfilter after 12 s.
const containerDrain = 5 * time.Second

// containerWait bounds how long lines wait for debug files after a signal. It is not zero, since
// the last lines of a dead container are its backtrace.
const containerWait = 2 * time.Second

type containerFlags struct {
	path fileName
	form string
}

func containerForms() []string { return []string{"cri", "json-file"} }

// containerURI returns the command line for the URI
// binary:///usr/bin/symfilter?container-log=&--path=FILE. containerd passes each member as two
// arguments, name and value, in random order. If several members have one name, it passes only the
// first. ok is false for other args.
func containerURI(args []string) (line []string, ok bool) {
	if len(args)%2 != 0 {
		return nil, false
	}
	for i := 0; i < len(args); i += 2 {
		name, value := args[i], args[i+1]
		switch {
		case name == containerCommand && !ok && !strings.HasPrefix(value, "-"):
			ok = true
			if value != "" {
				line = append(line, "--path="+value)
			}
		case !strings.HasPrefix(name, "-"):
			return nil, false
		case value == "":
			line = append(line, name)
		case strings.HasPrefix(name, "--"):
			line = append(line, name+"="+value)
		default:
			line = append(line, name, value)
		}
	}
	if !ok {
		return nil, false
	}
	return append([]string{containerCommand}, line...), true
}

const containerCommand = "container-log"

// logPath returns the value of --path, with {id} and {namespace} replaced by the container's.
func (f *containerFlags) logPath(getenv func(string) string) (string, error) {
	if f.path == "" {
		return "", usageError{errors.New("container-log needs --path FILE: the log to write")}
	}
	path := string(f.path)
	for field, name := range map[string]string{"{id}": "CONTAINER_ID", "{namespace}": "CONTAINER_NAMESPACE"} {
		if !strings.Contains(path, field) {
			continue
		}
		value := getenv(name)
		if value == "" || value == "." || value == ".." || strings.ContainsAny(value, "/\x00") {
			return "", fmt.Errorf("--path %s: %s is %q, which cannot be part of a file name; containerd sets this variable", f.path, name, value)
		}
		path = strings.ReplaceAll(path, field, value)
	}
	return path, nil
}

// runContainerLog writes the symbolized log of a container until the container has ended.
func runContainerLog(c *config, _ []string, std standard) (int, error) {
	path, err := c.container.logPath(os.Getenv)
	if err != nil {
		return exitUsage, err
	}
	c.container.path = fileName(path)
	streams, ready, err := containerStreams()
	if err != nil {
		return exitIO, err
	}
	if err := c.pickOutput(); err != nil {
		return exitUsage, err
	}
	if err := c.check(); err != nil {
		return exitUsage, err
	}
	maps, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	os.MkdirAll(filepath.Dir(path), 0o755) // if it fails, opening the file reports the reason
	r := &filterRun{std: std}
	if r.session, err = c.session(std); err != nil {
		return exitIO, err
	}
	defer r.close()
	stop := &stopper{reading: make(chan struct{})}
	log, err := containerlog.Open(path, func(err error) { r.diag.line("--path: %v; symfilter waits until the file can be written", err) }, stop.reading)
	if err != nil {
		return exitIO, fmt.Errorf("--path: %w", err)
	}
	defer log.Close()
	if err := r.session.open(nil); err != nil {
		return exitIO, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options, err := r.filterOptions(ctx, maps)
	if err != nil {
		return exitUsage, err
	}
	shared := newReports(c, r.Symbolizer, nil, maps)
	l := &pipeline{form: c.output, w: io.Discard, c: c, options: options, reports: &shared}
	shared.output = c.output
	r.pipelines = []*pipeline{l}
	r.stream = &stream{out: std.out, diag: r.diag, stop: stop}
	signals := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGHUP) // each write checks whether the file was moved
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		time.AfterFunc(containerWait, cancel) // ends the wait for debug files
		time.AfterFunc(containerDrain, func() { close(stop.reading) })
	}()
	ready.Close() // the container starts now; it may end at once, and SIGTERM follows
	var wait sync.WaitGroup
	codes := make([]int, len(streams))
	for i, in := range streams {
		wait.Go(func() { codes[i] = r.containerStream(in, log) })
	}
	wait.Wait()
	sum := r.stream.unresolved.All()
	r.report(sum, false)
	if !c.explain {
		r.summarize(sum, false)
	}
	return max(codes[0], codes[1]), nil
}

// containerStream filters one stream of the container, which has its own modules and maps. It
// returns the exit code.
func (r *filterRun) containerStream(in *os.File, log *containerlog.File) int {
	form := containerlog.CRI
	if r.c.container.form == "json-file" {
		form = containerlog.Docker
	}
	out := containerlog.NewStream(log, in.Name(), form)
	readErr, writeErr := r.stream.run(r.engine(in, in.Name(), false, out), in, in.Name(), true)
	if err := out.Close(); writeErr == nil {
		writeErr = err
	}
	switch {
	case readErr != nil:
		r.diag.line("%s", readError(in.Name(), readErr))
	case writeErr != nil:
		r.diag.line("--path: %v", writeErr)
	default:
		return exitOK
	}
	return exitIO
}
