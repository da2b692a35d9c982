package main

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// testdata has events as Lambda gives them, in the order in which they arrive.
//
//go:embed testdata/*.json
var testdata embed.FS

// What befalls the functions, by the event that it happens to.
const (
	killedAtWork    = "02-one-account" // soon after it was handed out
	killedAnswering = "03-redelivered" // when all is written, and nobody has heard so
	noTime          = "05-deposits"
	afterTheFreeze  = "08-after-a-freeze"
)

// frozen is for how long all functions are frozen before the last event.
const frozen = 1500 * time.Millisecond

// drama plays the events to the functions.
type drama struct {
	settings
	out   io.Writer
	queue *queue
	host  *host
	crew  *crew.Crew[line]
	began chan struct{} // closed when crew is set

	mu       sync.Mutex // guards out too
	happened map[string]bool
	calls    map[string]call // by request, for what functions say of them
	killed   int
	killing  map[string]func() // by request: the function is killed at it
}

// line is what a function writes to its log, as JSON.
type line struct {
	Msg, Request             string
	Booked, Repeated, Failed int
}

// demonstrate lets functions take all events, and audits the accounts.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	files, err := readEvents()
	if err != nil {
		return err
	}
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	name := "dynahold-lambda-" + rand.Text()[:8]
	table, err := repo.NewTable[account](engine.Client(), name, repo.TableConfig{})
	if err != nil {
		return err
	}
	defer crew.Drop(ctx, "lambda", errs, engine.Client(), name)
	if err := table.EnsureTable(ctx); err != nil {
		return err
	}
	messages := 0
	for _, f := range files {
		messages += len(f.records)
	}
	fmt.Fprintf(out, "%d functions, %d events with %d messages, each delivered twice at least\n\n", s.functions, len(files), messages)
	d := &drama{settings: s, out: out, queue: newQueue(), began: make(chan struct{}), happened: map[string]bool{}, calls: map[string]call{}, killing: map[string]func(){}}
	began := time.Now()
	if err := d.play(ctx, engine, name, files); err != nil {
		return err
	}
	faults, err := audit(ctx, engine.Client(), name, files, d.queue.dead)
	if err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Fprintln(out, "  WRONG", f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d things are wrong", len(faults))
	}
	fmt.Fprintf(out, "\n%.1f s; every transfer booked once, %d dead letters\n", time.Since(began).Seconds(), len(d.queue.dead))
	fmt.Fprintln(out, "audit: balances are those of the events, nothing twice, nothing lost, no account locked")
	return nil
}

// readEvents reads the files, in order.
func readEvents() (all []delivery, err error) {
	err = fs.WalkDir(testdata, "testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := testdata.ReadFile(path)
		if err != nil {
			return err
		}
		var event events.SQSEvent
		if err := json.Unmarshal(text, &event); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, delivery{strings.TrimSuffix(entry.Name(), ".json"), event.Records})
		return nil
	})
	return all, err
}

// play starts the functions, and lets them take the events: the last one after they
// were frozen for a while.
func (d *drama) play(ctx context.Context, engine *localdb.Engine, table string, files []delivery) error {
	d.host = &host{queue: d.queue, freeze: d.freeze, thaw: d.thaw, handed: d.handed, answered: d.answered,
		calls: map[string]call{}, dead: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: d.host.handler(), ReadHeaderTimeout: timeout}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	running, stop := context.WithCancel(ctx)
	if d.crew, err = start(running, d.settings, engine, table, listener.Addr().String()); err != nil {
		stop()
		return err
	}
	close(d.began)
	heard := make(chan struct{})
	defer func() {
		stop()
		<-heard // all have ended
	}()
	go func() {
		defer close(heard)
		for l := range d.crew.Heard {
			d.hear(l)
		}
	}()
	for _, f := range files {
		if f.name == afterTheFreeze {
			if err := d.settled(ctx, heard); err != nil {
				return err
			}
			select {
			case <-time.After(frozen):
			case <-ctx.Done():
				return ctx.Err()
			}
			d.tell("all functions were frozen for %v", frozen)
		}
		d.queue.put(f.name, f.records)
		if !d.kill || f.name != killedAtWork && f.name != killedAnswering { // these come again by themselves
			d.queue.put(f.name, f.records) // a standard queue may deliver twice, and to two functions at once
		}
	}
	if err := d.settled(ctx, heard); err != nil {
		return err
	}
	if died := d.crew.Errs(); len(died) > d.killed {
		return errors.Join(died...)
	}
	return nil
}

// start launches the functions with the environment that Lambda gives them.
func start(ctx context.Context, s settings, engine *localdb.Engine, table, api string) (*crew.Crew[line], error) {
	client := engine.Client().Options()
	credentials, err := client.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return crew.Start[line](ctx, crew.Config{Prefix: "f", Size: s.functions, Endpoint: engine.Endpoint(),
		Args: func(string) []string { return nil },
		Env: func(name string) []string {
			return []string{"AWS_LAMBDA_RUNTIME_API=" + api + "/" + name, "TABLE=" + table,
				"AWS_REGION=" + client.Region, "AWS_ACCESS_KEY_ID=" + credentials.AccessKeyID,
				"AWS_SECRET_ACCESS_KEY=" + credentials.SecretAccessKey, "AWS_SESSION_TOKEN=" + credentials.SessionToken,
				"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=false"}
		}})
}

// settled waits until no delivery is open.
func (d *drama) settled(ctx context.Context, gone <-chan struct{}) error {
	done := make(chan struct{})
	go func() {
		d.queue.open.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-gone:
		return fmt.Errorf("all functions have ended: %v", d.crew.Errs())
	case <-ctx.Done():
		return fmt.Errorf("%w; functions that have ended: %v", ctx.Err(), d.crew.Errs())
	}
}

func (d *drama) freeze(function string) {
	<-d.began
	if crew.CanPause {
		_ = d.crew.Pause(function) // it may have ended
	}
}

func (d *drama) thaw(function string) {
	if crew.CanPause {
		_ = d.crew.Resume(function)
	}
}

// handed says how much time a function has for an event, and may kill it at work.
func (d *drama) handed(c call) time.Duration {
	d.mu.Lock()
	d.calls[c.request] = c
	d.mu.Unlock()
	switch {
	case c.name == noTime && d.first(c):
		d.tell("%s  %-24s  has no time left", c.function, c.name)
		return reserve / 2
	case d.kill && c.name == killedAtWork && d.first(c):
		kill := sync.OnceFunc(func() { d.slay(c, "killed at work") })
		d.mu.Lock()
		d.killing[c.request] = kill
		d.mu.Unlock()
		time.AfterFunc(3*time.Millisecond, kill)
	}
	return timeout
}

// answered may kill a function whose answer is on its way: also one that is to be killed
// at work, and was faster, so that it does not die at something else.
func (d *drama) answered(c call) {
	d.mu.Lock()
	kill := d.killing[c.request]
	d.mu.Unlock()
	if kill != nil {
		kill()
	}
	if d.kill && c.name == killedAnswering && d.first(c) {
		d.slay(c, "killed before its answer was heard")
	}
}

// first tells whether this is the first time for an event.
func (d *drama) first(c call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.happened[c.name]
	d.happened[c.name] = true
	return !before
}

// slay kills a function; what it worked on comes again.
func (d *drama) slay(c call, how string) {
	_ = d.crew.Kill(c.function) // it may have ended by itself
	d.tell("%s  %-24s  %s", c.function, c.name, how)
	d.mu.Lock()
	d.killed++
	d.mu.Unlock()
	d.host.bury(c.function)
}

// hear shows what a function says of a call.
func (d *drama) hear(l line) {
	d.mu.Lock()
	c := d.calls[l.Request]
	d.mu.Unlock()
	if l.Msg == "batch" {
		d.tell("%s  %-24s  %2d booked, %2d repeated, %2d to come again", c.function, c.name, l.Booked, l.Repeated, l.Failed)
	}
}

func (d *drama) tell(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format+"\n", args...)
}
