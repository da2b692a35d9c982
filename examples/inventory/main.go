// Command inventory is a shop on a busy day: workers consume a stream of
// orders and status events, delivered at least once and out of order, and keep
// stock, customers and order states right in DynamoDB. Afterwards it proves
// from the input alone that they are.
//
//	go run ./examples/inventory
//
// Each kind of record has the strategy that suits it:
//
//	stock      pessimistic  everybody wants the few hot products: lock, read, decide, commit
//	customers  optimistic   collisions are rare: read, add, write if unchanged
//	status     nolock       the latest event wins: one write, no read
//	orders     (Create)     written once, when everything about the order is done
//
// An order of several products is one transaction over these tables: it gets all
// of them or none. An order of one product does without, in steps.
//
// What to look at, in this order: shop.go, the types and their repositories;
// whole.go, the transaction; orders.go, how an order is counted once although
// workers die between two steps and the queue delivers twice; work.go, the
// workers; audit.go, what "right" means. The rest is plumbing: input.go reads, report.go prints,
// requests.go counts, generate made the input, orders.jsonl.
//
// It runs on an embedded engine, or, with AWS_ENDPOINT_URL_DYNAMODB set, on
// Amazon DynamoDB or any compatible server.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/dynahold/dynahold/localdb"
)

//go:generate go run ./generate -o orders.jsonl

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const help = `Usage: inventory [flags]

Consumes orders and status events with concurrent workers, keeps stock,
customers and order states in DynamoDB, prints a summary, and audits the tables
against the input.

Flags:
  -input FILE    events as JSON lines; "-" is standard input
                 (default: the orders.jsonl that is built in)
  -workers N     concurrent workers (default 16)
  -prefix TEXT   beginning of the four tables' names
                 (default: "dynahold-inventory-", the time, and random letters)
  -resume        go on in tables that exist already: those of a run that was
                 killed, or of one that is under way (then with -keep); without
                 it existing tables are an error
  -keep          keep the tables; otherwise they are deleted at the end
                 (an embedded engine forgets them anyway)
  -lease TIME    how long a worker that died blocks a product (default 10s)
  -quiet         print nothing but what is wrong

An input line, by its "kind":
  {"kind":"stock","product":"p-1","quantity":90}
  {"kind":"order","order":"o-1","customer":"c-1","lines":[{"product":"p-1","quantity":2,"price":499}],"time":"2025-03-14T08:00:00Z"}
  {"kind":"status","order":"o-1","event":"o-1/2","status":"paid","time":"2025-03-14T08:05:00.250Z"}
Stock comes before the orders of a product. An order has up to 20 products. Lines may come repeatedly and,
otherwise, in any order. "price" is in cents, for one piece. Other fields are
passed over.

Environment: AWS_ENDPOINT_URL_DYNAMODB, with region and credentials as for every
AWS tool, names a server to use instead of the embedded engine. NO_COLOR
switches colours off.

Exit code: 0 all is well; 1 a line was malformed, the audit found a fault, or
the work failed; 2 wrong usage; 130 interrupted.
`

type options struct {
	input, prefix       string
	workers             int
	lease               time.Duration
	resume, keep, quiet bool
}

// tablePrefix leaves room for the longest of the tables' own names.
var tablePrefix = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,240}$`)

// parse reads the flags. An error means wrong usage; flag.ErrHelp that help is
// wanted.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("inventory", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.input, "input", "", "")
	flags.StringVar(&o.prefix, "prefix", "dynahold-inventory-"+time.Now().UTC().Format("20060102-150405-")+rand.Text()[:6]+"-", "")
	flags.IntVar(&o.workers, "workers", 16, "")
	flags.DurationVar(&o.lease, "lease", 10*time.Second, "")
	flags.BoolVar(&o.resume, "resume", false, "")
	flags.BoolVar(&o.keep, "keep", false, "")
	flags.BoolVar(&o.quiet, "quiet", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: an input file is given as -input FILE", flags.Arg(0))
	case o.workers < 1 || o.workers > 1024:
		return o, fmt.Errorf("-workers %d: give a number from 1 to 1024", o.workers)
	case !tablePrefix.MatchString(o.prefix):
		return o, fmt.Errorf("-prefix %q: table names consist of at most 255 letters, digits, '_', '-' and '.'", o.prefix)
	case o.lease < time.Second || o.lease > 24*time.Hour:
		return o, fmt.Errorf("-lease %v: give a time from 1s to 24h", o.lease)
	}
	return o, nil
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	opt, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, help)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "inventory: %v\nRun it with -h for help.\n", err)
		return exitUsage
	}
	in, err := load(ctx, opt.input, stdin)
	if ctx.Err() != nil {
		return failed(ctx, stderr, err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "inventory: %v\n", err)
		return exitUsage
	}
	reportMalformed(stderr, in)

	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return failed(ctx, stderr, err)
	}
	defer func() { _ = engine.Close() }()
	s, err := openShop(ctx, engine, opt)
	if err != nil {
		return failed(ctx, stderr, err)
	}
	code := serve(ctx, s, in, opt, console{out: stdout, err: stderr, quiet: opt.quiet})
	if err := s.close(opt.keep); err != nil {
		fmt.Fprintf(stderr, "inventory: tables %s*: %v\n", s.prefix, err)
		code = max(code, exitFailed)
	}
	if opt.keep {
		fmt.Fprintf(stderr, "Kept the tables %s*.\n", s.prefix)
	}
	return code
}

// serve works through the input, reports, and audits.
func serve(ctx context.Context, s *shop, in *input, opt options, c console) int {
	c.printf("%d events, %d workers, %s, tables %s*\n", len(in.events), opt.workers, s.where, s.prefix)
	t, err := s.work(ctx, in, opt.workers, c)
	switch {
	case ctx.Err() != nil:
		c.summary(t, in)
		fmt.Fprintf(c.err, "inventory: interrupted after %d of %d events: no audit\n", t.done.Load(), len(in.events))
		return exitInterrupted
	case err != nil:
		c.summary(t, in)
		return failed(ctx, c.err, err)
	}
	checks, err := audit(ctx, s, in)
	if err != nil {
		c.summary(t, in)
		return failed(ctx, c.err, err)
	}
	c.summary(t, in)
	right := c.audit(checks)
	if n := len(in.malformed); n > 0 {
		fmt.Fprintf(c.err, "inventory: %s; everything else was done\n", plural(n, "malformed line was skipped", "malformed lines were skipped"))
	}
	if !right || len(in.malformed) > 0 {
		return exitFailed
	}
	return exitOK
}

// failed reports an error; one that comes of an interruption is none.
func failed(ctx context.Context, stderr io.Writer, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "inventory: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "inventory: %v\n", err)
	return exitFailed
}
