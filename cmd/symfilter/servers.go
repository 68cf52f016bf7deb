package main

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/internal/wording"
)

// serverURLs returns the debuginfod servers in a flag or DEBUGINFOD_URLS. If a flag requests the
// system's servers, it returns the servers in /etc/debuginfod. No server is built in.
func (c *config) serverURLs(fromEnv []string) ([]string, error) {
	switch {
	case c.noServers || c.offline:
		return nil, nil
	case c.serverWords != "" && c.serverWords != "system":
		return strings.Fields(c.serverWords), nil
	case c.serverWords == "" && len(fromEnv) > 0:
		return fromEnv, nil
	case c.serverWords == "" && !c.servers:
		return nil, nil
	}
	urls, err := debuginfod.SystemURLs(doctor.SystemURLs)
	if err != nil {
		return nil, fmt.Errorf("--debuginfod-urls=system: %w", err)
	}
	if len(urls) == 0 {
		return nil, usageError{fmt.Errorf("no debuginfod server is known: set DEBUGINFOD_URLS or --debuginfod-urls; %s names none", doctor.SystemURLs)}
	}
	return urls, nil
}

// client returns the finder that reads debuginfod's cache and asks the servers, if any.
func (c *config) client(getenv func(string) string, diag *diagnostics, status *statusLine) (*debuginfod.Client, error) {
	o, err := debuginfod.OptionsFromEnv(getenv)
	if err != nil {
		diag.printf("environment: %v; using the default", err)
	}
	if o.URLs, err = c.serverURLs(o.URLs); err != nil {
		return nil, err
	}
	c.urls, c.downloads = o.URLs, o.CacheDir
	o.Offline = c.offline
	o.AskAgain = c.examining
	o.CacheMax = int64(c.cacheMax)
	if len(o.URLs) > 0 {
		o.Version = startup.Release()
	}
	r := progressReport{diag: diag, status: status, told: c.verbose || o.Verbose || o.ShowProgress}
	o.Progress = r.progress
	o.FirstContact = func(server string) { diag.printf("asking %s for debug files", server) }
	o.FirstFailure = func(server, reason string) { diag.printf("server %s: %s", server, reason) }
	o.Limited = func(burst, perSecond int) {
		diag.printf("the log names more than %d build IDs at once: from now on servers are asked for at most %d new IDs per second, and addresses of the other IDs stay unresolved", burst, perSecond)
	}
	client, err := debuginfod.New(o)
	if err != nil {
		return nil, err
	}
	for _, s := range client.Servers() {
		if s.Refused != "" {
			diag.printf("server %s: %s", s.URL, s.Refused)
		}
	}
	if err := access.Debuginfod(client).(interface{ CheckCache() error }).CheckCache(); err != nil {
		diag.printf("the cache %s is not used: %v", o.CacheDir, err)
	}
	c.closers = append(c.closers, clientEnd{client, diag})
	return client, nil
}

// A clientEnd is a client whose Close also reports the number of build IDs that were not requested.
type clientEnd struct {
	*debuginfod.Client
	diag *diagnostics
}

func (e clientEnd) Close() error {
	err := e.Client.Close()
	if n := unasked(e.Client); n > 0 && !e.diag.quiet {
		e.diag.line("servers were not asked for %s; to ask for more, run symfilter again: downloaded files are kept", wording.Count(int64(n), "build ID", "build IDs"))
	}
	return err
}

// unasked returns the number of build IDs that were not requested, since too many were new.
func unasked(c *debuginfod.Client) int {
	return access.Debuginfod(c).(interface{ Unasked() int }).Unasked()
}

// A progressReport prints the progress of downloads in the status line of a terminal. If told is
// set, it also prints a line at the start and the end of each download.
type progressReport struct {
	diag   *diagnostics
	status *statusLine
	told   bool
}

func (r *progressReport) progress(p debuginfod.Progress) {
	if r.status.w != nil {
		text := ""
		if !p.Done {
			text = progressText(p)
		}
		r.status.set(text)
	}
	if !r.told {
		return
	}
	switch {
	case p.Done && errors.Is(p.Err, debuginfod.ErrClosed):
		r.diag.line("%s: download stopped after %s: the log has ended", fetched(p), megabytes(p.Bytes))
	case p.Done && p.Err != nil:
		r.diag.line("%s: %v", fetched(p), p.Err)
	case p.Done:
		r.diag.line("%s: %s from %s", fetched(p), megabytes(p.Bytes), host(p.Server))
	case p.Server == "" && p.Bytes == 0:
		r.diag.line("%s: asking servers", fetched(p))
	}
}

// progressText returns the progress of one download, such as "libc.so.6 93ac61ec… 12/34 MB from
// debuginfod.debian.net".
func progressText(p debuginfod.Progress) string {
	text := fetched(p)
	switch {
	case p.Server == "":
		return wording.Line(text + ": asking servers")
	case p.Total > 0:
		text += fmt.Sprintf(" %.0f/%s", float64(p.Bytes)/1e6, megabytes(p.Total))
	default:
		text += " " + megabytes(p.Bytes)
	}
	return wording.Line(text + " from " + host(p.Server))
}

func fetched(p debuginfod.Progress) string {
	const shown = 8 // hex digits: enough to find the build ID in the log
	id := p.ID.String()
	if len(id) > shown {
		id = id[:shown] + "…"
	}
	if name := path.Base(p.Name); p.Name != "" {
		const most = 40 // bytes
		return name[:min(len(name), most)] + " " + id
	}
	return id
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func host(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server
}
