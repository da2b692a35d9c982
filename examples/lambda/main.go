// Command lambda is an AWS Lambda function that takes transfers from an SQS queue
// and books each of them once on its account, however often it is delivered, in
// whatever order, and wherever the function is frozen or dies.
//
//	go run ./examples/lambda
//
// What to look at, in this order: function.go, all that is deployed; template.yaml,
// with what it needs in AWS; testdata, events as Lambda gives them. The rest runs it
// without AWS: runtime.go is Lambda's runtime API on this machine, to which the
// program starts itself as several functions (examples/internal/crew); queue.go is the
// queue; local.go plays the events, freezes the functions between calls as Lambda
// does, kills two and leaves one no time; audit.go compares the accounts with the
// events. The function notices no difference: it speaks to AWS_LAMBDA_RUNTIME_API.
//
// It uses the embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if inLambda() {
		serve()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// inLambda tells whether there is somebody to take events from.
func inLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// settings of a run without AWS.
type settings struct {
	functions int
	kill      bool
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := demonstrate(ctx, s, out, errs); err != nil {
		fmt.Fprintln(errs, "lambda:", err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("lambda", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {
		fmt.Fprintln(errs, "Functions take the events of testdata from a queue, and the accounts are audited.\n\nFlags:")
		fs.PrintDefaults()
	}
	fs.IntVar(&s.functions, "functions", 4, "number of function processes")
	fs.BoolVar(&s.kill, "kill", true, "kill two of them")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.functions < 1 || s.functions > 50:
		err = fmt.Errorf("-functions %d: use 1 to 50", s.functions)
	case s.functions < 3:
		s.kill = false // somebody must be left to go on
	}
	if err != nil {
		fmt.Fprintln(errs, "lambda:", err)
	}
	return s, err
}
