// Symfilterd symbolizes logs as a service: it runs the pipelines of a configuration file, each from
// files, sockets, HTTP or journald to files, standard output, the peer or a socket.
//
//	symfilterd --config FILE [--check]
//
// SIGHUP reads the configuration again and reopens outputs. SIGTERM and SIGINT end it within five
// seconds. It exits with 0 after these, 1 if it cannot run, 2 after wrong usage or with a
// configuration that cannot be used.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/symfilter/symfilter/daemon"
	"github.com/symfilter/symfilter/internal/service"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	inherited, err := service.Inherited() // before other files are opened
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flags := flag.NewFlagSet("symfilterd", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE`")
	check := flags.Bool("check", false, "check the configuration, and end")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	conf, err := daemon.Load(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if *check {
		return 0
	}
	level := new(slog.LevelVar)
	log := slog.New(service.NewHandler(os.Stderr, service.Format(conf.Log.Format), level))
	if err := level.UnmarshalText([]byte(conf.Log.Level)); err != nil {
		log.Error("log.level: use debug, info, warn or error", "error", err)
		return 2
	}
	manager, err := service.Connect()
	if err != nil {
		log.Warn(err.Error())
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	d, err := daemon.New(conf, daemon.Options{
		Log: log, Stdin: os.Stdin, Stdout: os.Stdout, Inherited: inherited, Manager: manager, Version: version(),
	})
	if err != nil {
		log.Error(err.Error())
		return 1
	}
	go func() {
		for range hup {
			d.Refresh(func() (*daemon.Config, error) { return daemon.Load(*path) }) // it logs its error
		}
	}()
	if err := d.Run(ctx); err != nil {
		log.Error(err.Error())
		return 1
	}
	return 0
}

// version returns the version of the module that the program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}
